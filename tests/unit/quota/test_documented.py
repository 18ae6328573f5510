# SPDX-License-Identifier: Apache-2.0
"""The pages about quota name what there is."""

from pathlib import Path

import pytest

from policies.model import keys
from policies.quota.charge import read_charge
from policies.quota.notice import read_notice
from policies.quota.planning.values import Why
from policies.quota.reclaimable import _KEEP_ANNOTATIONS

DOCS = Path(__file__).parents[3] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("why", [why for why in Why if why is not Why.NEXT])
def test_every_reason_for_waiting_is_explained(why: Why) -> None:
    assert f"| `{why}` |" in page("quota.md")


@pytest.mark.parametrize(
    "key",
    [
        keys.GANG_LABEL,
        keys.GANG_SIZE,
        keys.EVICTION_COST,
        keys.DECISION,
        keys.REASON,
        keys.CHARGE,
        keys.NOTICE,
        keys.TERM,
        keys.VOIDED,
        *_KEEP_ANNOTATIONS,
    ],
)
def test_every_annotation_of_quota_is_explained(key: str) -> None:
    assert f"| `{key}` |" in page("annotations.md")


def test_the_charge_and_the_notice_that_are_shown_can_be_read() -> None:
    text = page("annotations.md").split("```\n")[1].replace("\n ", "")
    charge, notice = text.splitlines()
    found = read_charge(charge)
    assert found is not None
    assert (found.amount.milli, found.to_annotation()) == (250, charge)
    assert read_notice(notice) is not None
