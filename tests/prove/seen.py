# SPDX-License-Identifier: Apache-2.0
"""What the observer keeps of a pod. The keys are written out: they are part of what is proven."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tests.prove.world import Json, World

GATE = "sluice.dev/quota"
CHARGE = "state.sluice.dev/charge"
REASON = "state.sluice.dev/reason"
NOTICE = "state.sluice.dev/notice"
GANG = "sluice.dev/gang"
GANG_SIZE = "sluice.dev/gang-size"

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod as one event showed it. `cost` is in thousandths of a GPU."""

    uid: str
    namespace: str
    name: str
    version: int
    created: str
    gates: tuple[str, ...]
    cost: Fraction
    devices: Mapping[str, int]
    is_ended: bool = False
    is_running: bool = False
    is_deleting: bool = False
    disruption: str = ""
    """The reason of its condition DisruptionTarget: who ends it before its time."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    gang: str = ""
    gang_size: int = 0
    priority: int = 0
    is_firm: bool = False
    """It may take so long to end that it is never taken back."""

    @property
    def is_gated(self) -> bool:
        """Tell whether Sluice holds it."""
        return GATE in self.gates

    @property
    def is_waiting(self) -> bool:
        """Tell whether it waits for Sluice alone, and is to live."""
        return self.gates == (GATE,) and not self.is_deleting and not self.is_ended

    @property
    def counts(self) -> bool:
        """Tell whether it takes of its tenant's ceiling: released, and neither ended nor gone."""
        return not self.is_gated and not self.is_ended

    @property
    def charge(self) -> str:
        """Return what Sluice says that it is charged."""
        return self.annotations.get(CHARGE, "")

    @property
    def reason(self) -> str:
        """Return why Sluice says that it waits."""
        return self.annotations.get(REASON, "")

    @property
    def label(self) -> str:
        """Return its name for reports."""
        return f"{self.namespace}/{self.name}"


def see(pod: Json, world: World) -> SeenPod:
    """Return what the observer keeps of a raw pod."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    devices = world.devices_of(pod)
    annotations = metadata.get("annotations", {})
    return SeenPod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=int(metadata["resourceVersion"]),
        created=metadata.get("creationTimestamp", ""),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates", ())),
        cost=world.cost(devices),
        devices=devices,
        is_ended=status.get("phase") in _ENDED,
        is_running=status.get("phase") == "Running",
        is_deleting="deletionTimestamp" in metadata,
        disruption=_disruption(status),
        annotations={k: annotations[k] for k in (CHARGE, REASON, NOTICE) if k in annotations},
        gang=metadata.get("labels", {}).get(GANG, ""),
        gang_size=int(annotations.get(GANG_SIZE, "0")),
        priority=spec.get("priority", 0),
        is_firm=spec.get("terminationGracePeriodSeconds", 30) > world.most_grace_seconds,
    )


def charged(pod: SeenPod) -> tuple[str, int] | None:
    """Return the tenant and the thousandths of a pod's charge, None where there is none."""
    try:
        plain = json.loads(pod.charge)
        return str(plain["tenant"]), int(plain["milli"])
    except (ValueError, TypeError, KeyError):
        return None


def _disruption(status: Json) -> str:
    for condition in status.get("conditions", ()):
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            return str(condition.get("reason", ""))
    return ""
