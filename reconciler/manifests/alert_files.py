# SPDX-License-Identifier: Apache-2.0
"""The files of manifests/alerts: the rules for a plain Prometheus and for its operator.

A test compares them with what is in the tree. Who writes them there is not known here.
"""

from collections.abc import Mapping
from typing import Final

from reconciler.manifests.monitoring import MonitoringOptions, prometheus_rule
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.text import to_yaml
from reconciler.monitoring.catalog import GROUPS
from reconciler.monitoring.rules import rule_file

_HEADER: Final = "# SPDX-License-Identifier: Apache-2.0\n# Rendered; do not edit: {subject}.\n---\n"


def alert_files(options: ManifestOptions) -> Mapping[str, str]:
    """Return the text of each file by its name, for an installation of these options."""
    rules = rule_file(GROUPS)
    return {
        "sluice.rules.yaml": _HEADER.format(subject="rules for `rule_files` of Prometheus")
        + to_yaml([rules]),
        "prometheusrule.yaml": _HEADER.format(subject="the same rules for the Prometheus operator")
        + to_yaml([prometheus_rule(MonitoringOptions(options))]),
    }
