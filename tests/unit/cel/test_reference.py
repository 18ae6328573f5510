# SPDX-License-Identifier: Apache-2.0
"""The reference page of CEL, and that what it names is there."""

import re

import pytest

from policies.cel import Environment, ExpressionError, ResultType
from policies.cel.libraries import LIBRARIES
from policies.cel.unsupported import UNSUPPORTED
from policies.cel.variables import FIELD_NOTES
from tests.support.generate_cel_reference import TARGET, render
from tests.unit.cel.cases import CASES


def test_the_page_is_what_the_tables_say() -> None:
    command = "python -m tests.support.generate_cel_reference"
    assert TARGET.read_text(encoding="utf-8") == render(), f"rewrite it with: {command}"


def test_every_note_on_a_field_stands_on_the_page() -> None:
    page = render()
    assert [path for path in FIELD_NOTES if f"`{path}`" not in page] == []


def test_every_call_of_a_library_stands_in_the_table_of_values() -> None:
    text = "\n".join(source for source, _ in CASES)
    names = {
        match[1]
        for library in LIBRARIES
        for call in library.calls
        if (match := re.search(r"(\w+)\(", call))
    }
    assert sorted(name for name in names if f"{name}(" not in text) == []


@pytest.mark.parametrize("name", sorted({name for names in UNSUPPORTED.values() for name in names}))
def test_what_is_not_supported_says_so_however_it_is_called(
    environment: Environment, name: str
) -> None:
    call = f"{name}('a') == 1" if "." in name else f"object.kind.{name}('a') == {name}('a')"
    with pytest.raises(ExpressionError) as caught:
        environment.compile(call, ResultType.BOOL)
    messages = [problem.message for problem in caught.value.problems]
    if name == "format":  # text has a function of that name
        assert "no matching overload for 'format'" in messages[0]
    else:
        assert "not supported by Sluice yet" in messages[0]
