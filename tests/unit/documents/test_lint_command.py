# SPDX-License-Identifier: Apache-2.0
"""`sluice lint` knows the time, so that it can tell of exemptions that have ended."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice import main
from tests.unit.documents.loading import COMPLETE, document


def exemption(expires_at: str) -> str:
    spec = f"policies: [no-raw-gpu]\nmatch: {{users: [x]}}\nreason: x\nexpiresAt: {expires_at}"
    return document("Exemption", "week", spec)


@pytest.mark.parametrize(
    ("expires_at", "warnings", "code"),
    [("2001-01-01T00:00:00Z", 1, 1), ("9999-01-01T00:00:00Z", 0, 0)],
)
def test_lint_tells_of_an_exemption_that_has_ended(
    tmp_path: Path, expires_at: str, warnings: int, code: int
) -> None:
    (tmp_path / "all.yaml").write_text(f"{COMPLETE}---\n{exemption(expires_at)}")
    ran = CliRunner().invoke(main, ["lint", "--strict", str(tmp_path)])

    assert ran.output.count("warning: Exemption/week: spec.expiresAt: has passed") == warnings
    assert ran.exit_code == code
