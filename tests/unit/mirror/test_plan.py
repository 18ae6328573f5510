# SPDX-License-Identifier: Apache-2.0
"""What is written for which documents and objects."""

from dataclasses import replace
from typing import Any

import pytest

from policies.documents.kinds import Kind
from policies.documents.problems import Problem, Severity
from policies.documents.source import SourceText
from reconciler.mirror.documents import FileDocument, file_documents
from reconciler.mirror.plan import Command, Delete, Documents, Tell, Write, plan
from reconciler.mirror.view import Acceptance, Found, found

_ALL = frozenset(Kind)
_CHAT = """\
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat, labels: {team: x}, annotations: {note: why}}
spec: {namespaces: {names: [chat]}, quota: {gpus: {guarantee: 0.5}}}
"""
_FILE = SourceText("tenants.yaml", _CHAT.encode())
(CHAT,) = file_documents([_FILE])


def documents(
    *files: FileDocument, served: tuple[SourceText, ...] = (), problems: tuple[Problem, ...] = ()
) -> Documents:
    is_broken = any(problem.severity is Severity.ERROR for problem in problems)
    return Documents(files, frozenset(served), problems, is_broken)


def raw(name: str = "chat", *, mirror: bool = True, **parts: Any) -> dict[str, Any]:
    labels = {"labels": {"state.sluice.dev/source": "file"}} if mirror else {}
    metadata = {"name": name, "uid": "u1", "resourceVersion": "7", "generation": 2, **labels}
    return {"metadata": {**metadata, **parts.pop("metadata", {})}, "spec": {}, **parts}


def mirror(name: str = "chat", digest: str = CHAT.digest, used: str = "") -> Found:
    item = raw(
        name,
        metadata={"annotations": {"state.sluice.dev/digest": digest}},
        status={"used": used} if used else {},
    )
    return found(Kind.TENANT, item)


def by_hand(name: str = "hand") -> Found:
    return found(Kind.TENANT, raw(name, mirror=False))


def text_of(item: Found) -> SourceText:
    assert item.source is not None
    return item.source


def error(message: str, *, file: str, document: str = "", line: int = 0) -> Problem:
    return Problem(Severity.ERROR, message, file, line, line, document)


def writes(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    return tuple(command for command in commands if not isinstance(command, Tell))


def told(commands: tuple[Command, ...]) -> Acceptance:
    (command,) = [command for command in commands if isinstance(command, Tell)]
    return command.acceptance


def test_a_document_without_a_mirror_gets_one() -> None:
    assert plan(documents(CHAT), (), _ALL) == (Write(CHAT, ""),)


def test_a_mirror_that_says_the_same_is_left() -> None:
    assert writes(plan(documents(CHAT), (mirror(),), _ALL)) == ()


def test_a_mirror_that_says_something_else_is_changed_as_it_was_seen() -> None:
    assert writes(plan(documents(CHAT), (mirror(digest="old"),), _ALL)) == (Write(CHAT, "7"),)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"namespaces": {}}},
        {"labels": {}},
        {"annotations": {}},
        {"file": "moved.yaml"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_part_of_a_document_counts(change: dict[str, Any]) -> None:
    assert replace(CHAT, **change).digest != CHAT.digest


def test_a_mirror_goes_with_its_document() -> None:
    gone = mirror("gone")

    assert writes(plan(documents(CHAT), (mirror(), gone), _ALL)) == (Delete(gone),)


@pytest.mark.parametrize("used", ["", "0", "0.0", "0.000"])
def test_a_tenant_that_uses_nothing_goes(used: str) -> None:
    gone = mirror("gone", used=used)

    assert plan(documents(), (gone,), _ALL) == (Delete(gone),)


@pytest.mark.parametrize("used", ["0.001", "2", "10", "100.5"])
def test_a_tenant_in_use_stays_and_says_so(used: str) -> None:
    commands = plan(documents(), (mirror("gone", used=used),), _ALL)

    assert writes(commands) == ()
    assert told(commands).reason == "DocumentGone"
    assert f"use {used} GPUs" in told(commands).message


def test_an_object_of_the_same_name_that_people_made_is_never_changed() -> None:
    assert writes(plan(documents(CHAT), (by_hand("chat"),), _ALL)) == ()


def test_nothing_is_made_of_a_kind_whose_objects_are_not_known() -> None:
    assert plan(documents(CHAT), (), frozenset({Kind.GPU_POLICY})) == ()


def test_before_a_good_set_was_loaded_nothing_is_written_or_taken_away() -> None:
    before = Documents(None, frozenset(), (), is_broken=True)

    assert plan(before, (mirror(), mirror("gone", used="2")), _ALL) == ()


def test_an_accepted_document_says_so_with_its_file() -> None:
    acceptance = told(plan(documents(CHAT), (mirror(),), _ALL))

    assert acceptance == Acceptance(True, "Served", "", "tenants.yaml", 2)


def test_what_is_said_already_is_not_said_again() -> None:
    acceptance = told(plan(documents(CHAT), (mirror(),), _ALL))
    after = replace(mirror(), acceptance=acceptance)

    assert plan(documents(CHAT), (after,), _ALL) == ()
    changed = replace(after, generation=3)
    assert told(plan(documents(CHAT), (changed,), _ALL)).observed_generation == 3


def test_a_mirror_whose_file_has_become_bad_says_why() -> None:
    problem = error("unknown field", file="tenants.yaml", document="Tenant/chat", line=4)

    commands = plan(documents(CHAT, problems=(problem,)), (mirror(),), _ALL)

    assert writes(commands) == ()
    assert not told(commands).is_accepted
    assert "tenants.yaml:4:4: error: Tenant/chat: unknown field" in told(commands).message


def test_a_mirror_is_not_held_to_the_errors_of_others() -> None:
    problem = error("unknown field", file="tenants.yaml", document="Tenant/other", line=4)

    assert told(plan(documents(CHAT, problems=(problem,)), (mirror(),), _ALL)).is_accepted


def test_an_object_that_is_served_says_so_and_a_warning_too() -> None:
    item = by_hand()
    warning = Problem(Severity.WARNING, "selects everything", text_of(item).name)
    state = documents(served=(text_of(item),), problems=(warning,))

    acceptance = told(plan(state, (item,), _ALL))

    assert (acceptance.is_accepted, acceptance.source) == (True, "API")
    assert acceptance.message.endswith("warning: selects everything")


def test_an_object_with_errors_says_them() -> None:
    item = by_hand()
    state = documents(problems=(error("unknown field", file=text_of(item).name),))

    acceptance = told(plan(state, (item,), _ALL))

    assert (acceptance.is_accepted, acceptance.reason) == (False, "Invalid")
    assert acceptance.message == "tenant/hand (in the API): error: unknown field"


def test_a_good_object_beside_bad_ones_says_what_holds_it_up() -> None:
    state = documents(problems=(error("unknown field", file="tenants.yaml", line=4),))

    acceptance = told(plan(state, (by_hand(),), _ALL))

    assert (acceptance.is_accepted, acceptance.reason) == (False, "OthersInvalid")
    assert "tenants.yaml:4:4" in acceptance.message


def test_an_object_that_is_served_stays_accepted_while_others_are_bad() -> None:
    item = by_hand()
    problem = error("unknown field", file="tenants.yaml", line=4)
    state = documents(served=(text_of(item),), problems=(problem,))

    assert told(plan(state, (item,), _ALL)).is_accepted


def test_of_an_object_that_has_not_been_read_yet_nothing_is_said() -> None:
    assert plan(documents(), (by_hand(),), _ALL) == ()


def test_a_long_list_of_errors_is_cut() -> None:
    item = by_hand()
    many = tuple(error(f"{number}{'x' * 100}", file=text_of(item).name) for number in range(100))

    assert len(told(plan(documents(problems=many), (item,), _ALL)).message) == 4096
