# SPDX-License-Identifier: Apache-2.0
"""Every policy of the library does what its page and its tests say."""

import json
import re
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import sluice

LIBRARY = Path(__file__).resolve().parents[3] / "policies" / "library"
NAMES = sorted(folder.parent.name for folder in LIBRARY.glob("*/README.md"))
KEEPS_WHOLE = """
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: keeps-whole}
spec: {order: 0, rewrite: {profile: whole}}
"""

each = pytest.mark.parametrize("name", NAMES)


def run(*arguments: object) -> tuple[int, str]:
    ran = CliRunner().invoke(sluice.main, [str(argument) for argument in arguments])
    return ran.exit_code, ran.output


def cases(name: str) -> list[dict[str, Any]]:
    suite = yaml.safe_load((LIBRARY / name / "tests" / "suite.yaml").read_text())
    found: list[dict[str, Any]] = suite["spec"]["cases"]
    return found


def test_the_library_has_the_policies_that_people_begin_with() -> None:
    assert {
        "inference-time-slices",
        "memory-limits",
        "mig-by-memory",
        "no-raw-gpu",
        "notebooks-smallest-share",
        "per-pod-ceilings",
        "training-exclusive",
        "training-mps",
    } <= set(NAMES)


@each
def test_a_policy_lints_without_error_or_warning(name: str) -> None:
    code, output = run("lint", "--strict", "-o", "json", LIBRARY / name)
    assert json.loads(output)["problems"] == []
    assert code == 0


@each
def test_its_suite_passes_with_allowed_and_refused_cases(name: str) -> None:
    code, output = run("test", LIBRARY / name)
    assert code == 0, output
    assert f"{len(cases(name))} passed, 0 failed" in output
    assert {case["expect"]["verdict"] for case in cases(name)} == {"Allowed", "Denied"}


@each
def test_every_refusal_of_its_suite_says_why(name: str) -> None:
    refused = [case["expect"] for case in cases(name) if case["expect"]["verdict"] == "Denied"]
    assert all("reason" in expect for expect in refused)


@each
def test_its_suite_fails_where_another_policy_goes_first(name: str, tmp_path: Path) -> None:
    copytree(LIBRARY / name, tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "policy.yaml").read_text()
    without = (d for d in text.split("\n---\n") if "\nkind: GPUPolicy\n" not in d)
    (tmp_path / "policy.yaml").write_text("\n---\n".join((*without, KEEPS_WHOLE)))

    code, output = run("test", tmp_path)

    assert code == 1, output
    assert "FAILED" in output


@each
def test_its_page_begins_with_a_sentence_and_says_how_hard_its_limits_are(name: str) -> None:
    first, blank, heading, *rest = (LIBRARY / name / "README.md").read_text().splitlines()
    assert re.fullmatch(r"[A-Z][^#*]{20,98}\.", first)
    assert (blank, heading) == ("", f"# {name}")
    for question in ("What it does", "When to use it", "What to change", "How hard its limits are"):
        assert sum(line.startswith(f"**{question}.** ") for line in rest) == 1


@each
def test_its_policy_is_named_as_its_folder(name: str) -> None:
    documents = yaml.safe_load_all((LIBRARY / name / "policy.yaml").read_text())
    policies = [d["metadata"]["name"] for d in documents if d["kind"] == "GPUPolicy"]
    assert policies == [name]


@each
def test_every_pod_of_its_tests_is_used(name: str) -> None:
    tests = LIBRARY / name / "tests"
    used = {tests / case["pod"]["file"] for case in cases(name)}
    assert used == set((tests / ".fixtures" / "pods").iterdir())


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("together")
    for name in NAMES:
        code, output = run("library", "copy", name, directory)
        assert code == 0, output
    return directory


def test_all_policies_work_in_one_directory(together: Path) -> None:
    code, output = run("lint", "--strict", together)
    assert code == 0, output
    code, output = run("test", together)
    assert code == 0, output
    assert f"{sum(len(cases(name)) for name in NAMES)} passed" in output


def test_all_policies_lint_beside_tenants_without_their_tests(
    together: Path, tmp_path: Path
) -> None:
    for policy in together.glob("*.yaml"):
        (tmp_path / policy.name).write_bytes(policy.read_bytes())
    (tmp_path / "tenants.yaml").write_text(
        "apiVersion: sluice.dev/v1alpha1\nkind: Tenant\nmetadata: {name: chat}\n"
        "spec: {namespaces: {names: [chat]}}\n"
    )
    code, output = run("lint", "--strict", tmp_path)
    assert code == 0, output
