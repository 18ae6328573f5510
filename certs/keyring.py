# SPDX-License-Identifier: Apache-2.0
"""The authorities of one webhook over time: which signs, which will, which are still trusted.

A client must trust an authority before it meets a leaf of it, and for as long as it may. So a new
one is `coming` first, and one that has been replaced is `retired` until its last leaf has ended.
Values and steps between them; when a step is due is said by who knows what clients trust.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509

from certs.errors import CertificateError
from certs.issue import KeyPair, issue_authority
from certs.verify import is_issued_by, is_valid_at


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates are valid, and how much is left when their successor is made.

    A leaf that is replaced halfway leaves its keeper so many weeks to be away.
    """

    authority: timedelta = timedelta(days=365)
    authority_renewal: timedelta = timedelta(days=180)
    leaf: timedelta = timedelta(days=90)
    leaf_renewal: timedelta = timedelta(days=45)


@dataclass(frozen=True, slots=True)
class Retired:
    """An authority that signs no more, and the last leaf of it that is known to be in use."""

    authority: x509.Certificate
    last_leaf: x509.Certificate | None = None

    @property
    def ends_at(self) -> datetime:
        """Return from when nothing can be served by it: its last leaf, else itself, has ended."""
        own = self.authority.not_valid_after_utc
        return own if self.last_leaf is None else min(own, self.last_leaf.not_valid_after_utc)


@dataclass(frozen=True, slots=True)
class Keyring:
    """`current` signs; `coming` will, once everybody trusts it; `retired` are trusted still."""

    current: KeyPair
    coming: KeyPair | None = None
    retired: tuple[Retired, ...] = ()

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        """Return what clients must trust, each once, in the order of their coming to power."""
        coming = () if self.coming is None else (self.coming.certificate,)
        old = (item.authority for item in self.retired)
        return tuple(dict.fromkeys((self.current.certificate, *coming, *old)))


def begin(now: datetime, lifetimes: Lifetimes, retired: Iterable[Retired] = ()) -> Keyring:
    """Return a keyring with a new authority that signs at once, beside what is trusted already."""
    return expire(
        Keyring(issue_authority(now, lifetimes.authority), retired=tuple(retired)),
        now,
    )


def prepare(keyring: Keyring, now: datetime, lifetimes: Lifetimes) -> Keyring:
    """Return the keyring with a new authority that is to be trusted before it signs."""
    return replace(keyring, coming=issue_authority(now, lifetimes.authority))


def promote(keyring: Keyring, leaf: x509.Certificate | None, now: datetime) -> Keyring:
    """Let the coming authority sign; the current one is retired, with the leaf that is served.

    Raises CertificateError if none is coming.
    """
    if keyring.coming is None:
        raise CertificateError("no authority is coming")
    old = retire((keyring.current.certificate,), leaf)
    return expire(Keyring(keyring.coming, retired=(*old, *keyring.retired)), now)


def expire(keyring: Keyring, now: datetime) -> Keyring:
    """Return the keyring without the retired authorities by which nothing can be served."""
    return replace(
        keyring, retired=tuple(item for item in keyring.retired if not has_ended(item, now))
    )


def has_ended(item: Retired, now: datetime) -> bool:
    """Tell whether nothing can be served by a retired authority any more."""
    return item.ends_at < now


def retire(
    authorities: Iterable[x509.Certificate], leaf: x509.Certificate | None
) -> tuple[Retired, ...]:
    """Return authorities as retired ones, with the leaf for the one that has issued it."""
    return tuple(
        Retired(each, leaf if leaf is not None and is_issued_by(each, leaf) else None)
        for each in dict.fromkeys(authorities)
    )


def is_near_end(authority: x509.Certificate, now: datetime, lifetimes: Lifetimes) -> bool:
    """Tell whether an authority's successor is due."""
    return authority.not_valid_after_utc - now < lifetimes.authority_renewal


def is_usable(pair: KeyPair, now: datetime) -> bool:
    """Tell whether an authority can sign what clients would take."""
    return is_valid_at(pair.certificate, now)
