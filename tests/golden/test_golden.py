# SPDX-License-Identifier: Apache-2.0
"""The golden cases against the core: every answer is the one in the folder."""

import os
import re
from pathlib import Path

import pytest

from policies.checks import registry
from policies.decide import decide
from policies.model.request import Phase
from policies.sharing.modes import MODES
from tests.support.golden import (
    PATHS,
    ROOT,
    SETS,
    UPDATE,
    Case,
    covered,
    folders,
    load_case,
    misplaced,
    play_case,
    render,
    shared_set,
)
from webhook.envelope import parse

SENTENCE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){3,}")


@pytest.fixture(params=folders(), ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def case(request: pytest.FixtureRequest) -> Case:
    return load_case(request.param)


def test_every_answer_is_the_one_that_was_found_right(case: Case) -> None:
    rendered = render(case.answers())
    if os.environ.get(UPDATE) == "1":
        case.response.write_text(rendered, "utf-8")
    expected = case.response.read_text("utf-8")

    assert rendered == expected, (
        f"{case.name}: if the new answer is right, write it with\n"
        f"    {UPDATE}=1 pytest tests/golden/test_golden.py -k '{case.folder.name}'"
    )


def test_what_was_rewritten_is_left_alone_by_another_pass(case: Case) -> None:
    for exchange in (e for document in case.exchanges for e in document):
        if exchange.path == PATHS[Phase.VALIDATE] and exchange.decision.allowed:
            again = parse(exchange.review, Phase.MUTATE)
            assert decide(case.policies, case.facts, again).patch == ()


def test_what_people_read_is_short_and_on_one_line(case: Case) -> None:
    for exchange in (e for document in case.exchanges for e in document):
        warnings, message = exchange.decision.warnings, exchange.decision.message
        assert all(len(line) <= 256 for line in warnings)
        assert all(line.startswith("sluice: ") and line.isprintable() for line in warnings)
        assert message.isprintable()
        assert message.startswith("sluice: [") or exchange.decision.allowed


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_case_has_its_files_and_no_others_and_is_named_by_its_rule(folder: Path) -> None:
    assert misplaced(folder) == []
    assert SENTENCE.fullmatch(folder.name)


def test_there_is_nothing_but_topics_of_cases_and_sets() -> None:
    topics = {path for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    files = {path.name for path in ROOT.iterdir() if path.is_file()}

    assert all(name.startswith("test_") for name in files - {"__init__.py"})
    for topic in topics - {SETS}:
        assert [path for path in topic.iterdir() if not path.is_dir()] == []


def test_every_shared_set_is_used() -> None:
    used = {shared_set(folder) for folder in folders()}

    assert used == set(SETS.iterdir())


def _named(check: object) -> str:
    return str(check.__name__).rpartition(".")[2]  # type: ignore[attr-defined]  # checks are modules


@pytest.mark.parametrize("check", registry.CHECKS, ids=_named)
def test_every_check_has_a_case_that_it_lets_pass_and_one_that_it_alone_refuses(
    check: registry.Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    covering = [folder for folder in folders() if _named(check) in covered(folder)]
    refused = {folder for folder in covering if not _is_allowed(load_case(folder))}
    others = tuple(other for other in registry.CHECKS if other is not check)
    monkeypatch.setattr(registry, "CHECKS", others)

    assert set(covering) - refused, "no case that passes"
    assert refused, "no case that is refused"
    for folder in refused:
        assert _is_allowed(play_case(folder)), f"{folder.name} is refused for something else"


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.MODE))
def test_every_sharing_mode_has_a_case_that_is_given_and_one_that_is_refused(mode: object) -> None:
    name = str(mode.MODE)  # type: ignore[attr-defined]  # modes are modules
    covering = [load_case(folder) for folder in folders() if name in covered(folder)]

    assert any(_is_allowed(case) for case in covering), "no case that is given"
    assert any(not _is_allowed(case) for case in covering), "no case that is refused"


def test_cases_cover_nothing_that_does_not_exist() -> None:
    known = {_named(check) for check in registry.CHECKS} | {str(mode.MODE) for mode in MODES}

    assert {name for folder in folders() for name in covered(folder)} <= known


def _is_allowed(case: Case) -> bool:
    return all(e.decision.allowed for document in case.exchanges for e in document)
