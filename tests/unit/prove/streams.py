# SPDX-License-Identifier: Apache-2.0
"""Made-up worlds, pods and events for tests of the observer."""

import itertools
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tests.prove.observer import Observer
from tests.prove.seen import CHARGE, GATE
from tests.prove.world import Json, Tenant, World

SHARED = "nvidia.com/gpu.shared"
WHOLE = "nvidia.com/gpu"


def world(ceiling: int = 1000, guarantee: int = 500, shares: int = 16) -> World:
    """Two tenants `a` and `b` in namespaces of their names; a share is a quarter of a GPU."""
    return World(
        tuple(
            Tenant(name, frozenset({name}), Fraction(guarantee), Fraction(ceiling)) for name in "ab"
        ),
        {SHARED: Fraction(1000, 4), WHOLE: Fraction(1000)},
        {SHARED: shares},
    )


def pod(name: str, namespace: str = "a", shares: int = 1, **changes: Any) -> Json:
    """Return a pod that waits; a uid is its name unless given."""
    limits = {SHARED: str(shares)} if shares else {}
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "uid": changes.pop("uid", name),
        "resourceVersion": "0",
        "creationTimestamp": changes.pop("created", "2026-01-01T00:00:00Z"),
        "annotations": changes.pop("annotations", {}),
        "labels": changes.pop("labels", {}),
    }
    spec: Json = {
        "containers": [{"name": "main", "resources": {"limits": limits}}],
        "schedulingGates": [{"name": GATE}],
        **changes,
    }
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


class Stream:
    """An observer, and the events that it is fed, one version and one second after the other."""

    def __init__(self, of: World) -> None:
        self.observer = Observer(of)
        self._versions = itertools.count(1)
        self.now = 0.0
        self.observer.listed([], self.next(), self.now)

    def next(self) -> int:
        """Return the next version, a second later."""
        self.now += 1.0
        return next(self._versions)

    def send(self, kind: str, item: Json) -> Json:
        """Have the observer see this state of a pod."""
        item["metadata"]["resourceVersion"] = str(self.next())
        self.observer.changed(kind, item, self.now)
        return item

    def add(self, item: Json) -> Json:
        """Have it created."""
        return self.send("ADDED", item)

    def release(self, item: Json, charge: Mapping[str, object] | None = None) -> Json:
        """Have it charged rightly, unless told otherwise, and its gate taken off."""
        shares = int(item["spec"]["containers"][0]["resources"]["limits"].get(SHARED, 0))
        right = {"tenant": item["metadata"]["namespace"], "milli": 250 * shares}
        item["metadata"]["annotations"][CHARGE] = json.dumps(charge or right)
        item["spec"]["schedulingGates"] = []
        return self.send("MODIFIED", item)

    def phase(self, item: Json, phase: str) -> Json:
        """Have it come so far."""
        item["status"]["phase"] = phase
        return self.send("MODIFIED", item)

    def delete(self, item: Json, *, by: str = "", gone: bool = True) -> Json:
        """Have it deleted, evicted by `by` if that is given; unless `gone` it only ends."""
        if by:
            condition = {"type": "DisruptionTarget", "status": "True", "reason": by}
            item["status"]["conditions"] = [condition]
        item["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z"
        return self.send("DELETED" if gone else "MODIFIED", item)

    def kinds(self) -> list[str]:
        """Return the kinds of all findings."""
        return [str(finding.kind) for finding in self.observer.findings]
