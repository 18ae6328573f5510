# SPDX-License-Identifier: Apache-2.0
"""The reference page is what the schemas say, and is committed as it is now."""

import subprocess
import sys
from pathlib import Path

from policies.documents.kinds import LATER_FIELDS, LATER_KINDS, Kind
from policies.documents.reference import render

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "policies.md"
COMMAND = f"{Path(sys.executable).name} -m policies.documents.reference > {PAGE.relative_to(ROOT)}"


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), f"run: {COMMAND}"


def test_the_module_prints_the_page() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "policies.documents.reference"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
        timeout=30,
    )

    assert ran.stdout == render()


def test_the_page_tells_what_comes_later() -> None:
    page = render()

    assert all(f"- `{kind}` " in page for kind in LATER_KINDS)
    assert all(f"- `{path}`: " in page for later in LATER_FIELDS.values() for path in later)
    assert "- `spec.mode`: `DRA`, `vGPU`" in page


def test_the_page_has_every_kind_and_the_deepest_fields() -> None:
    page = render()

    assert all(f"\n## {kind}\n" in page for kind in Kind)
    assert "| `spec.match.labels.matchExpressions[].values` | list of text |" in page
    assert "| `spec.order` | whole number from 0 to 1000000; default `1000` |" in page
    assert "| `spec.cases[].expect.requests` | map of whole number from 0 |" in page
    assert "| `spec.quota.pools.<name>.guarantee` | decimal from 0 to 1000000 |" in page
    assert "| `spec.quota.resources.<name>.ceiling` | whole number from 0 to 1000000; **r" in page
    assert "| `spec.lending.idleAfter` | duration; default `30m` |" in page
    assert "| `spec.rewrite.fit.memory.default` | quantity |" in page
