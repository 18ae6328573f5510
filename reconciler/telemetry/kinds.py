# SPDX-License-Identifier: Apache-2.0
"""The kinds of sources by name. Apart from what they are made of, which takes long to import."""

from enum import StrEnum


class SourceKind(StrEnum):
    """Where samples come from."""

    NONE = "None"
    PROMETHEUS = "Prometheus"
    SCRAPE = "Scrape"
    ANNOTATIONS = "Annotations"
