# SPDX-License-Identifier: Apache-2.0
"""What people read of certificates: reasons and notes of Events. Wording only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reconciler.certificates.plan import Command, Publish, Refuse, Step, WriteAuthority


class CertificateReason(StrEnum):
    """Reasons of Events."""

    AUTHORITY_ISSUED = "AuthorityIssued"
    """There is a new authority, and it signs at once."""
    AUTHORITY_PREPARED = "AuthorityPrepared"
    """There is a new authority, which signs once every webhook trusts it."""
    AUTHORITY_ROTATED = "AuthorityRotated"
    """The new authority signs from now on."""
    AUTHORITY_RETIRED = "AuthorityRetired"
    """An authority is trusted no more."""
    CERTIFICATE_RENEWED = "CertificateRenewed"
    """There is a new serving certificate."""
    BUNDLE_WRITTEN = "BundleWritten"
    """A webhook configuration trusts others than before."""
    MANAGED_BY_OTHERS = "ManagedByOthers"
    """Nothing is written, since others manage this object."""


@dataclass(frozen=True, slots=True)
class Told:
    """An Event's reason and note, and whether somebody needs to act."""

    reason: CertificateReason
    note: str
    is_warning: bool = False


_STEPS: Final = {
    Step.BEGIN: (CertificateReason.AUTHORITY_ISSUED, "new certificate authority: {reason}"),
    Step.PREPARE: (
        CertificateReason.AUTHORITY_PREPARED,
        "new certificate authority, which is trusted before it signs: {reason}",
    ),
    Step.PROMOTE: (
        CertificateReason.AUTHORITY_ROTATED,
        "the new certificate authority signs from now on: {reason}",
    ),
    Step.EXPIRE: (
        CertificateReason.AUTHORITY_RETIRED,
        "a former certificate authority is trusted no more: {reason}",
    ),
}


def words(command: Command) -> Told | None:
    """Return what is told of a command that was carried out; None for what nobody needs to know."""
    match command:
        case Refuse(item):
            return Told(CertificateReason.MANAGED_BY_OTHERS, _refusal(item.others), is_warning=True)
        case WriteAuthority():
            reason, text = _STEPS[command.step]
            return Told(reason, text.format(reason=command.reason))
        case Publish():
            places = len(command.bundles)
            return Told(CertificateReason.BUNDLE_WRITTEN, f"wrote caBundle of {places} webhooks")
        case _ if command.reason:
            note = f"new serving certificate: {command.reason}"
            return Told(CertificateReason.CERTIFICATE_RENEWED, note)
        case _:
            return None


def _refusal(others: str) -> str:
    return (
        f"certificates are not written: this is managed by {others}. Leave it so and serve what is"
        " in it, or see docs/certificates.md for how to hand it to Sluice"
    )
