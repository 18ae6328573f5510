# SPDX-License-Identifier: Apache-2.0
"""Authorities come, sign, retire and end, and survive being written down."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519

from certs.errors import CertificateError
from certs.issue import issue_authority, issue_leaf
from certs.keyring import Keyring, Lifetimes, Retired, begin, expire, is_near_end, prepare, promote
from certs.keyring_pem import NAMES, decode_keyring, encode_keyring, salvage
from certs.pem import certificates_pem, key_pem, parse_certificates, parse_key

NOW = datetime(2031, 5, 17, 12, tzinfo=UTC)
TERMS = Lifetimes()


def leaf_of(keyring: Keyring, now: datetime = NOW) -> x509.Certificate:
    return issue_leaf(keyring.current, ("localhost",), now, TERMS.leaf).certificate


def rotated() -> tuple[Keyring, x509.Certificate]:
    first = begin(NOW, TERMS)
    leaf = leaf_of(first)
    return promote(prepare(first, NOW, TERMS), leaf, NOW), leaf


def test_a_coming_authority_is_trusted_and_does_not_sign() -> None:
    first = begin(NOW, TERMS)
    prepared = prepare(first, NOW, TERMS)
    assert prepared.coming is not None
    assert prepared.current == first.current
    assert prepared.trusted == (first.current.certificate, prepared.coming.certificate)


def test_a_retired_authority_is_trusted_until_its_last_leaf_has_ended() -> None:
    keyring, leaf = rotated()
    (old,) = keyring.retired
    assert old.last_leaf == leaf
    assert old.authority in keyring.trusted
    last = leaf.not_valid_after_utc
    assert expire(keyring, last) == keyring
    assert expire(keyring, last + timedelta(seconds=1)).retired == ()


def test_one_whose_leaf_is_not_known_is_trusted_until_it_ends_itself() -> None:
    stranger = issue_leaf(issue_authority(NOW), ("localhost",), NOW).certificate
    for leaf in (None, stranger):
        keyring = promote(prepare(begin(NOW, TERMS), NOW, TERMS), leaf, NOW)
        (old,) = keyring.retired
        assert old.last_leaf is None
        assert old.ends_at == old.authority.not_valid_after_utc


def test_an_authority_that_has_ended_is_not_trusted_for_the_sake_of_a_leaf() -> None:
    authority = issue_authority(NOW, timedelta(days=1))
    leaf = issue_leaf(authority, ("localhost",), NOW).certificate
    assert Retired(authority.certificate, leaf).ends_at <= NOW + timedelta(days=1)


def test_none_is_promoted_that_is_not_coming() -> None:
    with pytest.raises(CertificateError, match="no authority is coming"):
        promote(begin(NOW, TERMS), None, NOW)


def test_every_leaf_lasts_its_full_time_however_old_its_authority() -> None:
    authority = begin(NOW, TERMS).current
    due = authority.certificate.not_valid_after_utc - TERMS.authority_renewal
    assert not is_near_end(authority.certificate, due, TERMS)
    assert is_near_end(authority.certificate, due + timedelta(seconds=1), TERMS)
    late = due + timedelta(days=30)
    leaf = issue_leaf(authority, ("localhost",), late, TERMS.leaf).certificate
    assert leaf.not_valid_after_utc == late + TERMS.leaf


@pytest.mark.parametrize("has_coming", [False, True])
def test_a_keyring_is_the_same_after_it_was_written_down(has_coming: bool) -> None:
    keyring, _ = rotated()
    if has_coming:
        keyring = prepare(keyring, NOW, TERMS)
    texts = encode_keyring(keyring)
    assert texts.keys() <= set(NAMES)
    found = decode_keyring(texts)
    assert found.trusted == keyring.trusted
    assert found.retired == keyring.retired
    assert found.current.key.private_numbers() == keyring.current.key.private_numbers()
    assert (found.coming is None) is (keyring.coming is None)


def test_the_key_of_a_retired_authority_is_not_kept() -> None:
    first = begin(NOW, TERMS)
    texts = encode_keyring(promote(prepare(first, NOW, TERMS), None, NOW))
    assert all(key_pem(first.current.key) not in text for text in texts.values())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ca.crt", None, "ca.crt: missing"),
        ("ca.key", None, "ca.key: missing"),
        ("ca.crt", b"", "ca.crt: not a PEM certificate"),
        ("ca.key", b"nonsense", "ca.key: not a PEM private key"),
        ("ca.key", key_pem(issue_authority(NOW).key), "ca.key: not the key of ca.crt"),
        ("coming.key", None, "coming.key: missing"),
        ("retired.crt", b"nonsense", "retired.crt: not a PEM certificate"),
    ],
)
def test_what_is_damaged_is_named(name: str, value: bytes | None, message: str) -> None:
    texts = encode_keyring(prepare(rotated()[0], NOW, TERMS))
    if value is None:
        del texts[name]
    else:
        texts[name] = value
    with pytest.raises(CertificateError, match=message):
        decode_keyring(texts)


def test_a_leaf_is_no_authority() -> None:
    leaf = issue_leaf(issue_authority(NOW), ("localhost",), NOW)
    texts = {"ca.crt": certificates_pem((leaf.certificate,)), "ca.key": key_pem(leaf.key)}
    with pytest.raises(CertificateError, match="not the certificate of an authority"):
        decode_keyring(texts)


def test_of_damaged_texts_every_readable_authority_is_salvaged_with_its_leaf() -> None:
    keyring, _ = rotated()
    leaf = leaf_of(keyring)
    texts = [b"nonsense", certificates_pem(keyring.trusted), b"", certificates_pem((leaf,))]
    found = {item.authority: item.last_leaf for item in salvage(texts)}
    (old,) = keyring.retired
    assert found == {keyring.current.certificate: leaf, old.authority: None}


def test_keys_of_other_kinds_are_refused() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    with pytest.raises(CertificateError, match="neither EC nor RSA"):
        parse_key(key_pem(key), "tls.key")  # type: ignore[arg-type] # this is the point


def test_certificates_are_the_same_after_they_were_written_down() -> None:
    keyring, _ = rotated()
    assert parse_certificates(certificates_pem(keyring.trusted), "") == keyring.trusted
    assert replace(keyring, retired=()).trusted == (keyring.current.certificate,)
