# SPDX-License-Identifier: Apache-2.0
"""What is to be written next so that the webhook is served by what every API server trusts. Pure.

A new authority is put into every bundle first, and signs only when it has stood there for a while;
an old one leaves them when nothing can be served by it any more. If others manage any of the
objects, none is written: half of a chain of trust is worse than none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeAlias

from cryptography import x509

from certs.errors import CertificateError
from certs.keyring import (
    Keyring,
    Lifetimes,
    Retired,
    has_ended,
    is_near_end,
    is_usable,
    retire,
)
from certs.keyring_pem import decode_keyring, salvage
from certs.names import parse_name
from certs.pem import certificates_pem, parse_certificates, parse_key
from certs.verify import find_faults, is_due, is_valid_at, key_matches
from reconciler.certificates.view import Configuration, Entry, SecretView

CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
"""The keys of the Secret that replicas read."""

SETTLE_SECONDS: Final = 30.0
"""How long API servers may take to follow a configuration before a new authority signs."""

_KEPT: Final = timedelta(days=1)
"""So long after a new leaf was issued, what others had put into a bundle stays beside ours: until
then some replica may still be serving by it."""


class Step(StrEnum):
    """What becomes of the authorities."""

    BEGIN = "Begin"
    PREPARE = "Prepare"
    PROMOTE = "Promote"
    EXPIRE = "Expire"


@dataclass(frozen=True)
class Picture:
    """The objects as they are; None where there is none. `now` is the API server's time.

    `names` are those that a leaf must always be good for. `trusted_seconds` says how long every
    entry has trusted a certificate, as far as this leader has seen.
    """

    authority: SecretView | None
    serving: SecretView | None
    configurations: tuple[Configuration, ...]
    names: tuple[str, ...]
    now: datetime
    trusted_seconds: Mapping[x509.Certificate, float] = field(default_factory=dict)

    @property
    def entries(self) -> Iterator[Entry]:
        """Yield the entries of all configurations."""
        for each in self.configurations:
            yield from each.entries

    @cached_property
    def keyring(self) -> Keyring | None:
        """The authorities of the Secret; None where there are none that can be used."""
        if self.authority is None:
            return None
        try:
            return decode_keyring(self.authority.data)
        except CertificateError:
            return None

    @cached_property
    def leaf(self) -> x509.Certificate | None:
        """The certificate that replicas are to serve, good or not."""
        data = self.serving.data if self.serving is not None else {}
        try:
            return parse_certificates(data.get(CERTIFICATE, b""), CERTIFICATE)[0]
        except CertificateError:
            return None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Leave everything as it is, since others manage this object."""

    item: SecretView | Configuration


@dataclass(frozen=True, slots=True)
class WriteAuthority:
    """Change the authorities; `known` is their Secret as it is, None if it is to be made."""

    step: Step
    reason: str
    known: SecretView | None
    keyring: Keyring | None
    retired: tuple[Retired, ...] = ()
    leaf: x509.Certificate | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """Have a configuration trust these: for each entry, by its place, the new bundle (PEM)."""

    configuration: Configuration
    bundles: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class WriteServing:
    """Write the Secret of the replicas: a new leaf if there is a `reason`, else the bundle only."""

    keyring: Keyring
    known: SecretView | None
    names: tuple[str, ...]
    reason: str


Command: TypeAlias = Refuse | WriteAuthority | Publish | WriteServing


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things are valid, and how long a bundle takes to be known everywhere."""

    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    settle_seconds: float = SETTLE_SECONDS


_TERMS: Final = Terms()


def plan(picture: Picture, terms: Terms = _TERMS) -> tuple[Command, ...]:
    """Return what to do now, in order; what follows from it is planned on the next picture."""
    if refusals := tuple(_refusals(picture)):
        return refusals
    step = _next_step(picture, terms)
    if step is not None:
        return (step,)
    keyring = picture.keyring
    if keyring is None:
        raise AssertionError("without authorities there is a step to take")
    return (*_publishes(picture, keyring), *_serving(picture, keyring, terms))


def trusted_by_all(configurations: tuple[Configuration, ...]) -> frozenset[x509.Certificate]:
    """Return the certificates that every entry of every configuration trusts."""
    bundles = [frozenset(entry.trusted) for each in configurations for entry in each.entries]
    return frozenset.intersection(*bundles) if bundles else frozenset()


def _refusals(picture: Picture) -> Iterator[Refuse]:
    for secret in (picture.authority, picture.serving):
        if secret is not None and secret.others:
            yield Refuse(secret)
    for configuration in picture.configurations:
        if configuration.others:
            yield Refuse(configuration)


def _next_step(picture: Picture, terms: Terms) -> WriteAuthority | None:
    known, keyring, now = picture.authority, picture.keyring, picture.now
    if keyring is None:
        reason = "there is none" if known is None else "its Secret cannot be read"
        return WriteAuthority(Step.BEGIN, reason, known, None, _salvaged(picture))
    coming = keyring.coming
    if not is_usable(keyring.current, now):
        reason = "the one before is not valid now"
        if coming is not None and is_usable(coming, now):
            return WriteAuthority(Step.PROMOTE, reason, known, keyring, leaf=picture.leaf)
        old = retire((keyring.current.certificate,), picture.leaf)
        return WriteAuthority(Step.BEGIN, reason, known, None, (*old, *keyring.retired))
    if coming is None or not is_usable(coming, now):
        if reason := _why_prepare(picture, keyring, terms):
            return WriteAuthority(Step.PREPARE, reason, known, keyring)
    elif _is_settled(picture, coming.certificate, terms):
        reason = "every webhook trusts it"
        return WriteAuthority(Step.PROMOTE, reason, known, keyring, leaf=picture.leaf)
    if any(has_ended(item, now) for item in keyring.retired):
        return WriteAuthority(Step.EXPIRE, "nothing can be served by it", known, keyring)
    return None


def _why_prepare(picture: Picture, keyring: Keyring, terms: Terms) -> str:
    if is_near_end(keyring.current.certificate, picture.now, terms.lifetimes):
        return f"the one before ends at {keyring.current.certificate.not_valid_after_utc:%Y-%m-%d}"
    if picture.authority is not None and picture.authority.is_rotation_asked:
        return "it was asked for"
    return "the one that was to come is not valid" if keyring.coming is not None else ""


def _salvaged(picture: Picture) -> tuple[Retired, ...]:
    """Return what may be served by still, from whatever of the Secrets can be read."""
    secrets = (picture.authority, picture.serving)
    texts = (text for item in secrets if item is not None for text in item.data.values())
    return tuple(item for item in salvage(texts) if is_valid_at(item.authority, picture.now))


def _is_settled(picture: Picture, authority: x509.Certificate, terms: Terms) -> bool:
    if not any(picture.entries):
        return True  # nobody calls
    return picture.trusted_seconds.get(authority, -1.0) >= terms.settle_seconds


def _publishes(picture: Picture, keyring: Keyring) -> Iterator[Publish]:
    for each in picture.configurations:
        bundles = {}
        for place, entry in enumerate(each.entries):
            wanted = _bundle(picture, keyring, entry)
            if entry.trusted != wanted:
                bundles[place] = certificates_pem(wanted)
        if bundles:
            yield Publish(each, bundles)


def _bundle(picture: Picture, keyring: Keyring, entry: Entry) -> tuple[x509.Certificate, ...]:
    own = keyring.trusted
    leaf, now = picture.leaf, picture.now
    if leaf is not None and now >= leaf.not_valid_before_utc + _KEPT:
        return own
    others = (each for each in entry.trusted if is_valid_at(each, now))
    return tuple(dict.fromkeys((*own, *others)))


def _serving(picture: Picture, keyring: Keyring, terms: Terms) -> Iterator[WriteServing]:
    names, known = _names(picture), picture.serving
    reason = _why_renew(picture, keyring, names, terms)
    if reason and _may_sign(picture, keyring, terms):
        yield WriteServing(keyring, known, names, reason)
    elif known is not None and known.data.get(CA) != certificates_pem(keyring.trusted):
        yield WriteServing(keyring, known, names, "")


def _may_sign(picture: Picture, keyring: Keyring, terms: Terms) -> bool:
    """Tell whether a leaf of the current authority can be served without a call that fails.

    If nothing else is trusted that could be served, no call succeeds now, and nothing is lost.
    """
    current = keyring.current.certificate
    others = {
        each
        for entry in picture.entries
        for each in entry.trusted
        if each != current and is_valid_at(each, picture.now)
    }
    return not others or _is_settled(picture, current, terms)


def _why_renew(picture: Picture, keyring: Keyring, names: tuple[str, ...], terms: Terms) -> str:
    serving, authority, now = picture.serving, keyring.current.certificate, picture.now
    if serving is None:
        return "there is none"
    try:
        chain = parse_certificates(serving.data.get(CERTIFICATE, b""), CERTIFICATE)
        key = parse_key(serving.data.get(KEY, b""), KEY)
    except CertificateError:
        return "its Secret cannot be read"
    if not key_matches(chain[0], key):
        return "the key in its Secret is not its own"
    for fault in find_faults(chain, (authority,), names, now):
        return f"the one before is {fault}"
    if is_due(chain[0], authority, now, terms.lifetimes.leaf_renewal):
        return f"the one before ends at {chain[0].not_valid_after_utc:%Y-%m-%d}"
    return "it was asked for" if serving.is_rotation_asked else ""


def _names(picture: Picture) -> tuple[str, ...]:
    called = (entry.host for entry in picture.entries)
    return tuple(dict.fromkeys((*picture.names, *filter(_is_name, called))))


def _is_name(host: str) -> bool:
    try:
        parse_name(host)
    except CertificateError:
        return False
    return True
