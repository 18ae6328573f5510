# SPDX-License-Identifier: Apache-2.0
"""The page on workloads names every known kind, and its example can be loaded."""

import re
from pathlib import Path

from policies.workloads.paths import parse_path
from tests.support.workloads import kinds
from tests.unit.documents.loading import COMPLETE, Loader, lines, served

PAGE = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text(encoding="utf-8")


def test_the_page_names_every_known_kind_and_group() -> None:
    table = PAGE.partition("## Known kinds")[2].partition("## Further kinds")[0]

    assert {k.kind for k in kinds()} - set(re.findall(r"\w+", table)) == set()
    assert {k.group for k in kinds()} == set(re.findall(r"`([a-z0-9.-]+)`", table)) & {
        k.group for k in kinds()
    }


def test_the_example_of_a_further_kind_can_be_loaded(load_texts: Loader) -> None:
    (example,) = [
        text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "Settings" in text
    ]
    result = load_texts(COMPLETE, example)

    assert lines(result) == []
    (kind,) = served(result).settings.workloads
    assert kind.templates[0].path == parse_path("spec.tasks[*].template")
