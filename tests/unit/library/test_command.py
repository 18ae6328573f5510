# SPDX-License-Identifier: Apache-2.0
"""`sluice library`: what it lists, shows and copies, and what it leaves alone."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import sluice
from tests.unit.library.test_policies import LIBRARY, NAMES, cases, each, run


def below(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def test_list_names_every_folder_with_its_sentence() -> None:
    ran = CliRunner(env={"COLUMNS": "200"}).invoke(sluice.main, ["library", "list"])
    heading, *rows = ran.output.splitlines()
    assert heading.split("  ")[0] == "NAME"
    found = {row.split()[0]: row.split(maxsplit=1)[1].rstrip() for row in rows}
    assert found == {
        name: (LIBRARY / name / "README.md").read_text().splitlines()[0] for name in NAMES
    }


def test_list_keeps_names_whole_in_a_narrow_terminal() -> None:
    ran = CliRunner(env={"COLUMNS": "50"}).invoke(sluice.main, ["library", "list"])
    assert ran.exit_code == 0
    assert set(NAMES) <= set(ran.output.split())


@each
def test_show_prints_the_page_and_the_documents(name: str) -> None:
    code, output = run("library", "show", name)
    assert code == 0
    assert (LIBRARY / name / "README.md").read_text() in output
    assert output.endswith((LIBRARY / name / "policy.yaml").read_text())


@each
def test_a_copy_lints_and_its_tests_pass(name: str, tmp_path: Path) -> None:
    target = tmp_path / "not" / "there" / "yet"

    code, output = run("library", "copy", name, target)

    assert code == 0, output
    assert {f"wrote {target / file}" for file in below(target)} == set(output.splitlines())
    assert (target / f"{name}.yaml").read_bytes() == (LIBRARY / name / "policy.yaml").read_bytes()
    code, output = run("lint", "--strict", target)
    assert code == 0, output
    code, output = run("test", target)
    assert code == 0, output
    assert f"{len(cases(name))} passed, 0 failed" in output


def test_only_the_policy_lies_at_the_top_of_a_copy(tmp_path: Path) -> None:
    run("library", "copy", "no-raw-gpu", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"no-raw-gpu.yaml", "tests"}


@pytest.mark.parametrize("file", ["no-raw-gpu.yaml", "tests/no-raw-gpu/tenants.yaml"])
def test_a_file_that_is_there_stays_and_nothing_is_copied(file: str, tmp_path: Path) -> None:
    mine = tmp_path / file
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine\n")

    code, output = run("library", "copy", "no-raw-gpu", tmp_path)

    assert code == 2
    assert output == f"{mine}: error: is there already; nothing was copied\n"
    assert below(tmp_path) == {file}
    assert mine.read_text() == "mine\n"


def test_a_link_to_nowhere_is_not_written_through(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.yaml"
    target = tmp_path / "policies"
    target.mkdir()
    (target / "no-raw-gpu.yaml").symlink_to(elsewhere)

    code, output = run("library", "copy", "no-raw-gpu", target)

    assert code == 2
    assert "is there already" in output
    assert not elsewhere.exists()


def test_a_copy_that_fails_halfway_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "tests").write_text("a file where a directory is needed\n")

    code, output = run("library", "copy", "no-raw-gpu", tmp_path)

    assert code == 2
    assert output.startswith(f"{tmp_path / 'tests'}")
    assert "nothing was copied" in output
    assert below(tmp_path) == {"tests"}


def test_a_file_is_no_directory_to_copy_into(tmp_path: Path) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text("mine\n")
    code, output = run("library", "copy", "no-raw-gpu", file)
    assert code == 2
    assert "is a file" in output
    assert file.read_text() == "mine\n"


@pytest.mark.parametrize("command", [("show",), ("copy", "target")])
def test_a_name_that_is_nearly_right_is_suggested(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verb, *rest = command
    code, output = run("library", verb, "training-exlusive", *rest)
    assert code == 2
    wrong, hint = '"training-exlusive"', 'did you mean "training-exclusive"?'
    assert output == f"error: there is no library policy {wrong}; {hint}\n"
    assert below(tmp_path) == set()


@pytest.mark.parametrize(
    "name", ["zzz", "", "..", "../library/no-raw-gpu", "__pycache__", "é" * 500]
)
def test_what_is_no_name_is_refused_with_the_way_to_find_one(name: str) -> None:
    code, output = run("library", "show", name)
    assert code == 2
    assert output.startswith("error: there is no library policy ")
    assert "Traceback" not in output
    assert "sluice library list" in output or "did you mean" in output
