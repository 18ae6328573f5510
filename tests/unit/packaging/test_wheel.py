# SPDX-License-Identifier: Apache-2.0
"""What is installed is what is tested: the wheel has every module and data file, and no more."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOP_LEVEL = {"certs", "policies", "reconciler", "webhook", "sluice.py"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = directory.glob("*.whl")
    return built


def test_the_wheel_holds_every_module_and_data_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", *TOP_LEVEL], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert {name.split("/")[0] for name in names} == TOP_LEVEL
    assert set(tracked) <= names


def test_the_installed_command_lints_policies_away_from_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    assert "0 errors" in _sluice(target, "lint", "--", str(_policies()))


def test_the_installed_command_copies_a_library_policy_that_passes_its_tests(
    wheel: Path, tmp_path: Path
) -> None:
    target, copied = tmp_path / "site", str(tmp_path / "policies.d")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    assert "no-raw-gpu" in _sluice(target, "library", "list")
    assert "wrote " in _sluice(target, "library", "copy", "no-raw-gpu", copied)
    assert "0 warnings" in _sluice(target, "lint", "--strict", copied)
    assert "0 failed" in _sluice(target, "test", copied)


def _sluice(installed: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", "import sluice; sluice.main()", *arguments],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _policies() -> Path:
    return ROOT / "docs" / "examples" / "policies"
