# SPDX-License-Identifier: Apache-2.0
"""Whatever a person hands to the command: a line that says what and where, exit code 2."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import sluice

ROOT = Path(__file__).resolve().parents[3]
POLICIES = str(ROOT / "docs" / "examples" / "policies")
POD = """apiVersion: v1
kind: Pod
metadata: {name: a, namespace: chat}
spec: {containers: [{name: main, image: x}]}
"""


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(sluice.main, list(arguments), input=stdin)


def review(text: str) -> Result:
    return run("review", "-f", "-", "--policies", POLICIES, stdin=text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "standard input: error: holds no manifest"),
        ("# nothing\n---\n", "standard input: error: holds no manifest"),
        ("- 1\n", "standard input:1:1: error: a manifest is an object with apiVersion and kind"),
        ("kind: Pod\n", "standard input:1:1: error: apiVersion is missing"),
        (f"{POD}---\napiVersion: v1\n", "standard input:6:1: error: kind is missing"),
        ("a: [", "error: did not find expected node content"),
        ("a\0b", "standard input:1:2: error: control character"),
        (
            f"{POD}---\napiVersion: v1\nkind: Pod\nspec: 5\n",
            "standard input:6:1: error: spec is not",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: 3\n",
            "standard input:1:1: error: items is not a list",
        ),
    ],
)
def test_a_manifest_that_is_none_is_told_with_its_place(text: str, said: str) -> None:
    answer = review(text)

    assert answer.exit_code == 2, answer.output
    assert said in answer.output
    assert "Traceback" not in answer.output


def test_a_pod_without_gpus_is_allowed_with_exit_code_0() -> None:
    answer = review(POD)

    assert answer.exit_code == 0, answer.output
    assert "pod/a in chat: allowed" in answer.output


def test_one_refused_pod_gives_exit_code_1() -> None:
    gpu = POD.replace("image: x", "image: x, resources: {limits: {nvidia.com/gpus: 1}}")
    answer = review(f"{POD}---\n{gpu}")

    assert answer.exit_code == 1
    assert "[UnknownGPUResource]" in answer.output
    assert "did you mean nvidia.com/gpu?" in answer.output


@pytest.mark.parametrize("output", ["yaml", "json", "patch"])
def test_machine_readable_output_holds_nothing_else(output: str) -> None:
    answer = CliRunner().invoke(
        sluice.main, ["review", "-f", "-", "--policies", POLICIES, "-o", output], input=POD
    )

    assert answer.exit_code == 0
    assert "allowed by" not in answer.stdout


def test_policies_that_cannot_be_served_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: sluice.dev/v1alpha1\nkind: Tenent\n")
    for command in (("lint", str(tmp_path)), ("test", str(tmp_path))):
        answer = run(*command)
        assert answer.exit_code in (1, 2)
        assert 'did you mean "Tenant"?' in answer.output
    answer = run("review", "-f", "-", "--policies", str(tmp_path), stdin=POD)
    assert answer.exit_code == 2
    assert "a.yaml:2:7: error:" in answer.output


def test_a_file_that_is_not_there_is_named() -> None:
    answer = run("review", "-f", "/nowhere/pod.yaml", "--policies", POLICIES)

    assert answer.exit_code == 2
    assert "/nowhere/pod.yaml: error: no such file or directory" in answer.output


def test_facts_that_are_none_are_told(tmp_path: Path) -> None:
    facts = tmp_path / "facts.yaml"
    facts.write_text("kind: Node\n")
    answer = run("review", "-f", "-", "--policies", POLICIES, "--facts", str(facts), stdin=POD)

    assert answer.exit_code == 2
    assert "facts.yaml:1:" in answer.output


def test_the_examples_pass_their_own_suites() -> None:
    answer = run("test", POLICIES)

    assert answer.exit_code == 0, answer.output
    assert " 0 failed" in answer.output


def test_every_command_has_examples_in_its_help() -> None:
    context = click.Context(sluice.main)
    for name in sluice.main.list_commands(context):
        command = sluice.main.get_command(context, name)
        text = run(name, "--help").output
        if not hasattr(command, "commands"):
            assert "Examples:" in text, name


def test_certificates_are_made_once_and_kept(tmp_path: Path) -> None:
    directory = str(tmp_path / "certificates")

    assert "wrote" in run("certs", "--dir", directory).output
    assert "nothing to renew" in run("certs", "--dir", directory).output
    assert run("certs", "--dir", directory, "--name", "bad name").exit_code == 2
