# SPDX-License-Identifier: Apache-2.0
"""What a `SharingProfile` document says, before its mode has derived the rest."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.model.profile import Limiter, ShareWith, SharingMode, Toleration


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """The fields of `spec` as written; None or empty where the document is silent."""

    name: str
    mode: SharingMode
    vendor: str = "nvidia"
    resource: str | None = None
    products: tuple[str, ...] = ()
    replicas: int | None = None
    mig_profile: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    allow_multiple: bool = False
    share_with: ShareWith = ShareWith.ANY
    limiter: Limiter | None = None
    shipped: bool = False


class ProfileError(ValueError):
    """A profile that no GPU can give; `field` is the path below `spec` that is at fault."""

    def __init__(self, field_path: str, message: str) -> None:
        super().__init__(message)
        self.field_path = field_path


def demand_walls(spec: ProfileSpec) -> None:
    """Refuse what only means something where pods share with no wall between. Raises ProfileError.

    That anybody may sit beside is true behind a wall as well.
    """
    if spec.share_with is not ShareWith.ANY:
        raise ProfileError(
            "shareWith", f"mode {spec.mode} has a wall already; only TimeSlice and MPS have none"
        )
    if spec.limiter is not None:
        raise ProfileError("limiter", f"mode {spec.mode} limits memory by itself")
