# SPDX-License-Identifier: Apache-2.0
"""What is made from other files is current."""

import pytest

from policies.model.reasons import Reason
from tests.support.generate import ROOT, generated
from tests.support.reasons_reference import meanings


@pytest.mark.parametrize("path", sorted(generated()))
def test_a_generated_file_is_current(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == generated()[path], "run: make generate"


def test_every_reason_says_what_it_means() -> None:
    assert meanings().keys() == set(Reason)
