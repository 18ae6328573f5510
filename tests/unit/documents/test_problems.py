# SPDX-License-Identifier: Apache-2.0
"""Problems are one line each, in a stable order, whatever a document holds."""

from policies.documents.problems import Problem, Severity, has_errors, ordered, quoted

PROBLEM = Problem(
    Severity.ERROR,
    "unknown field",
    "p.yaml",
    3,
    7,
    "GPUPolicy/no-raw-gpu",
    "spec.enforcemnt",
    'did you mean "enforcement"?',
)


def test_a_problem_reads_as_compilers_write_them() -> None:
    assert str(PROBLEM) == (
        "p.yaml:3:7: error: GPUPolicy/no-raw-gpu: spec.enforcemnt: unknown field; "
        'did you mean "enforcement"?'
    )


def test_a_problem_of_no_place_has_no_place_in_its_line() -> None:
    assert str(Problem(Severity.WARNING, "there is no Tenant")) == "warning: there is no Tenant"
    assert str(Problem(Severity.NOTE, "x", "f.yaml")) == "f.yaml: note: x"


def test_json_has_every_field() -> None:
    assert PROBLEM.to_json() == {
        "severity": "Error",
        "file": "p.yaml",
        "line": 3,
        "column": 7,
        "document": "GPUPolicy/no-raw-gpu",
        "path": "spec.enforcemnt",
        "message": "unknown field",
        "suggestion": 'did you mean "enforcement"?',
    }


def test_no_name_in_a_document_can_forge_a_line_or_a_colour() -> None:
    forged = str(Problem(Severity.ERROR, "is \n\x1b[32mok\u2028\u202e", "a\r.yaml", 1, 1))

    assert forged == "a\\u000d.yaml:1:1: error: is \\u000a\\u001b[32mok\\u2028\\u202e"


def test_problems_are_told_once_and_in_the_order_of_the_file() -> None:
    later = Problem(Severity.ERROR, "m", "a.yaml", 10, 1)
    earlier = Problem(Severity.NOTE, "m", "a.yaml", 9, 2)
    worse = Problem(Severity.ERROR, "z", "a.yaml", 9, 2)
    other = Problem(Severity.ERROR, "m", "b.yaml", 1, 1)

    assert ordered([other, later, earlier, worse, later]) == (worse, earlier, later, other)


def test_only_an_error_keeps_a_set_from_being_served() -> None:
    assert has_errors([PROBLEM])
    assert not has_errors([Problem(Severity.WARNING, "w"), Problem(Severity.NOTE, "n")])


def test_a_long_value_is_shortened() -> None:
    assert len(quoted("x" * 1000)) == 66
