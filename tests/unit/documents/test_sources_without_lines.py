# SPDX-License-Identifier: Apache-2.0
"""Documents that stand in no file: their problems name them, and no line that nobody sees."""

import pytest

from policies.documents.source import SourceText, parse_documents
from reconciler.runtime.loading import Compiler

_TENANT = """\
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata:
  name: {name}
spec:
  namespaces: {{names: [{namespace}]}}
  {more}
"""
_IN_API = "tenant/chat (in the API)"


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


def source(
    name: str, *, tenant: str = "chat", namespace: str = "chat", more: str = "", lines: bool = True
) -> SourceText:
    text = _TENANT.format(name=tenant, namespace=namespace, more=more)
    return SourceText(name, text.encode(), has_lines=lines)


def errors(compiler: Compiler, *sources: SourceText) -> list[str]:
    found = compiler.load(sources).problems
    return [str(problem) for problem in found if problem.severity == "Error"]


def test_a_problem_names_the_object_and_no_line(compiler: Compiler) -> None:
    assert errors(compiler, source(_IN_API, more="cohrot: main", lines=False)) == [
        f'{_IN_API}: error: Tenant/chat: spec.cohrot: unknown field; did you mean "cohort"?'
    ]


def test_a_name_in_a_file_and_elsewhere_is_told_at_both(compiler: Compiler) -> None:
    found = errors(compiler, source("tenants.yaml"), source(_IN_API, lines=False))

    subject = "error: Tenant/chat: metadata.name: there is one of this name"
    assert found == [
        f"{_IN_API}: {subject} already, in tenants.yaml:4",
        f"tenants.yaml:4:9: {subject} too, as {_IN_API}",
    ]


def test_a_name_in_two_files_is_told_once(compiler: Compiler) -> None:
    (found,) = errors(compiler, source("a.yaml"), source("b.yaml"))

    assert found.startswith("b.yaml:4:9: ")


def test_what_a_file_clashes_with_elsewhere_is_named_without_a_line(compiler: Compiler) -> None:
    elsewhere = source("tenant/other (in the API)", tenant="other", lines=False)

    (found,) = errors(compiler, source("tenants.yaml"), elsewhere)

    assert found.startswith("tenant/other (in the API): error: Tenant/other: ")
    assert found.endswith("in tenants.yaml:4")


def test_a_fault_of_syntax_has_no_line_either() -> None:
    (problem,) = parse_documents(SourceText("x", b"{", has_lines=False)).problems

    assert (problem.line, problem.column) == (0, 0)


def test_expressions_of_several_lines_have_no_place(
    compiler: Compiler,
) -> None:
    text = b"""{"apiVersion": "sluice.dev/v1alpha1", "kind": "GPUPolicy",
        "metadata": {"name": "p"}, "spec": {"validate": [
        {"name": "x", "message": "m", "expression": "true &&\\n object.spec.contaners == 1"}]}}"""

    (found,) = errors(compiler, SourceText("gpupolicy/p (in the API)", text, has_lines=False))

    assert found.startswith("gpupolicy/p (in the API): error: GPUPolicy/p: spec.validate[0]")
