# SPDX-License-Identifier: Apache-2.0
"""What a pod asks of a node, devices apart from the rest. Where it may go is a constraint of it."""

from dataclasses import dataclass, field
from typing import Final

from policies.cluster.constraints import Constraints
from policies.cluster.shape import FitShape
from policies.vendors import Catalog

_ANYWHERE: Final = Constraints()


@dataclass(frozen=True, slots=True)
class DeviceAsk:
    """So many devices of one resource: a card, a share of one, or a MIG instance each.

    `units` are those of one card that are taken together; a device plugin hands out single ones.
    `mib` is the memory that the pod states for each, None where it states none.
    """

    resource: str
    count: int
    units: int = 1
    mib: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Devices, and the amounts of everything else by name (sorted, in base units, none is zero).

    Its hash is kept, since it is looked up for every pod.
    """

    devices: tuple[DeviceAsk, ...]
    amounts: tuple[tuple[str, int], ...] = ()
    constraints: Constraints = _ANYWHERE
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.devices, self.amounts, self.constraints)))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, shape: FitShape, catalog: Catalog, mib: int | None = None) -> "Ask":
        """Return the ask of a pod's shape; `mib` is what the pod states for each device."""
        gpus = tuple(pair for pair in shape.requests if catalog.classify(pair[0]) is not None)
        return cls(
            devices=tuple(DeviceAsk(name, count, mib=mib) for name, count in gpus),
            amounts=tuple(pair for pair in shape.requests if pair not in gpus),
            constraints=shape.constraints,
        )

    @property
    def resources(self) -> tuple[str, ...]:
        """Return the names of the devices that are asked."""
        return tuple(device.resource for device in self.devices)
