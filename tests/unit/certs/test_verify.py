# SPDX-License-Identifier: Apache-2.0
"""What is said of a leaf: expiry, authority, names, key, and when it is due."""

from datetime import datetime, timedelta

import pytest

from certs.errors import CertificateError
from certs.issue import AUTHORITY_VALIDITY, LEAF_VALIDITY, issue_authority, issue_leaf
from certs.verify import RENEW_BEFORE, find_faults, is_due, key_matches
from tests.unit.certs.conftest import NAMES, NOW

AUTHORITY = issue_authority(NOW)
LEAF = issue_leaf(AUTHORITY, NAMES, NOW)


def faults(names: tuple[str, ...], now: datetime) -> tuple[str, ...]:
    return find_faults((LEAF.certificate,), (AUTHORITY.certificate,), names, now)


def test_a_fresh_leaf_has_no_fault() -> None:
    assert faults(NAMES, NOW) == ()


def test_a_leaf_is_good_a_little_before_it_was_issued() -> None:
    assert faults(NAMES, NOW - timedelta(minutes=4)) == ()


def test_each_missing_name_is_a_fault_of_its_own() -> None:
    assert faults(("localhost", "a.example", "10.0.0.1"), NOW) == (
        "not usable for a.example: leaf certificate has no matching subjectAltName",
        "not usable for 10.0.0.1: leaf certificate has no matching subjectAltName",
    )


def test_an_expired_leaf_says_when_it_ended() -> None:
    assert faults(NAMES, NOW + LEAF_VALIDITY + timedelta(seconds=1)) == (
        "expired at 2032-05-16 12:00 UTC",
    )


def test_a_leaf_from_the_future_says_when_it_begins() -> None:
    assert faults(NAMES, NOW - timedelta(days=1)) == ("not valid before 2031-05-17 11:00 UTC",)


def test_another_authority_did_not_issue_it() -> None:
    other = issue_authority(NOW)
    assert find_faults((LEAF.certificate,), (other.certificate,), NAMES, NOW) == (
        "not issued by any certificate of the authority file",
    )


def test_one_of_several_authorities_is_enough() -> None:
    both = (issue_authority(NOW).certificate, AUTHORITY.certificate)
    assert find_faults((LEAF.certificate,), both, NAMES, NOW) == ()


def test_an_authority_is_no_serving_certificate() -> None:
    found = find_faults((AUTHORITY.certificate,), (AUTHORITY.certificate,), ("localhost",), NOW)
    assert len(found) == 1
    assert found[0].startswith("not usable for localhost")


def test_a_key_fits_only_its_own_certificate() -> None:
    assert key_matches(LEAF.certificate, LEAF.key)
    assert not key_matches(LEAF.certificate, AUTHORITY.key)


@pytest.mark.parametrize(
    ("before_end", "due"),
    [(RENEW_BEFORE + timedelta(seconds=1), False), (RENEW_BEFORE - timedelta(seconds=1), True)],
)
def test_a_leaf_is_due_when_little_is_left(before_end: timedelta, due: bool) -> None:
    assert is_due(LEAF.certificate, AUTHORITY.certificate, NOW + LEAF_VALIDITY - before_end) is due


def test_a_leaf_that_ends_with_its_authority_is_not_renewed_in_vain() -> None:
    late = NOW + AUTHORITY_VALIDITY - timedelta(days=10)
    leaf = issue_leaf(AUTHORITY, NAMES, late)
    assert leaf.certificate.not_valid_after_utc == AUTHORITY.certificate.not_valid_after_utc
    assert not is_due(leaf.certificate, AUTHORITY.certificate, late)


def test_serial_numbers_differ_and_keys_are_p256() -> None:
    other = issue_leaf(AUTHORITY, NAMES, NOW)
    assert other.certificate.serial_number != LEAF.certificate.serial_number
    assert other.key.key_size == 256


def test_a_leaf_needs_a_name() -> None:
    with pytest.raises(CertificateError, match="at least one name"):
        issue_leaf(AUTHORITY, (), NOW)
