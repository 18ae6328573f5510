# SPDX-License-Identifier: Apache-2.0
"""A small cluster's life with webhook and reconcilers apart: what happened, for tests to look at.

An owner takes its guarantee back from a borrower, twice; a pod waits; the leader changes.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reconciler.kube.document_resources import API_KINDS, plural
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.replica import Launch
from tests.integration.processes.probing import metric
from tests.integration.sluice.objects import Json, container, pod
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Answer, Team, until

OWNER: Final = "owner"
BORROWER: Final = "borrower"
_NODE: Final = "two-gpus"
_SECONDS: Final = 40.0
_NAMESPACES: Final = "/api/v1/namespaces"
_SLUICE: Final = "/apis/sluice.dev/v1alpha1"
_NOTICE: Final = "state.sluice.dev/notice"

_DOCUMENTS: Final = {
    "tenants": """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: owner}
spec:
  namespaces: {names: [owner]}
  quota: {gpus: {guarantee: 2, ceiling: 3}}
  cohort: main
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: borrower}
spec:
  namespaces: {names: [borrower]}
  quota: {gpus: {ceiling: 9}}
  cohort: main
""",
    "profile": """
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: h100}
spec: {mode: Exclusive, products: [NVIDIA-H100-80GB-HBM3]}
""",
    "policy": """
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: whole-h100}
spec: {order: 1, rewrite: {profile: h100}}
""",
    "pool": """
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {name: lab}
spec: {nodes: {selector: {matchLabels: {example.com/lab: "true"}}}}
""",
    "passing": """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: guest}
spec:
  namespaces: {names: [guest]}
  quota: {gpus: {ceiling: 1}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: h200}
spec: {mode: Exclusive, products: [NVIDIA-H200]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: guests}
spec: {order: 2, match: {namespaces: [guest]}, rewrite: {profile: h200}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {name: reserved}
spec: {nodes: {selector: {matchLabels: {example.com/reserved: "true"}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: ReclaimPolicy
metadata: {name: slow}
spec: {cohorts: [guests]}
---
apiVersion: sluice.dev/v1alpha1
kind: Exemption
metadata: {name: visitors}
spec:
  policies: [whole-h100]
  match: {namespaces: [visitors]}
  reason: a demonstration
  expiresAt: "2099-01-01T00:00:00Z"
""",
    "reclaim": """
apiVersion: sluice.dev/v1alpha1
kind: ReclaimPolicy
metadata: {name: quick}
spec: {cohorts: [main], notice: 2s, pdbTimeout: 4s}
""",
    "settings": """
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {name: cluster}
spec: {mode: Enforce}
""",
}


def write_documents(directory: Path) -> None:
    """Write one file for each kind of document that the API has."""
    directory.mkdir()
    for name, text in _DOCUMENTS.items():
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")


def reconcile(identity: str) -> Launch:
    """Return how a reconciler of this identity is started."""
    return Launch(("--identity", identity), command="reconcile")


@dataclass(slots=True)
class Seen:
    """What the story has shown."""

    admitted: Answer | None = None
    released: list[Json] = field(default_factory=list)
    notice: str = ""
    evicted_by: str = ""
    deleted_by: str = ""
    reason: str = ""
    status: Json = field(default_factory=dict)
    mirrors: set[str] = field(default_factory=set)
    mirrors_later: set[str] = field(default_factory=set)
    refused: Answer | None = None
    events: list[Json] = field(default_factory=list)
    leaders: list[dict[str, float]] = field(default_factory=list)
    failover_seconds: float = 0.0
    lease_after_stop: str = ""


class Story:
    """Tells it; each step waits for what it is about."""

    def __init__(self, control_plane: ControlPlane, rest: Rest, sluice: InstalledSluice) -> None:
        self._control_plane = control_plane
        self._rest = rest
        self._sluice = sluice
        self._policies = sluice.certificates.parent.parent / "policies"
        self._reconcilers = {
            name: sluice.add_replica(name, reconcile(name)) for name in ("first", "second")
        }
        self.seen = Seen()

    def tell(self) -> Seen:
        """Let it happen, and return what was seen."""
        owner, borrower = self._prepare()
        self._admit(borrower)
        self._evict(owner, borrower)
        self._delete(owner, borrower)
        self._wait(owner)
        self._refuse(owner)
        self._forget()
        self._change_leader(owner)
        self.seen.events = [*owner.events(), *borrower.events()]
        return self.seen

    def logs(self) -> str:
        """Return what all processes have logged."""
        replicas = (self._sluice.replica, *self._reconcilers.values())
        return "".join(each.log.read_text(encoding="utf-8") for each in replicas)

    def _prepare(self) -> tuple[Team, Team]:
        # The second node's GPUs are in no guarantee, so they may be borrowed.
        self._control_plane.create_nodes([nodes.whole(_NODE, count=2), nodes.whole("spare")])
        teams = self._team(OWNER), self._team(BORROWER)
        self.seen.leaders.append(self._leaders())
        return teams

    def _team(self, name: str) -> Team:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._rest.request("POST", _NAMESPACES, body)
        path = f"{_NAMESPACES}/{name}/serviceaccounts/default"
        until(lambda: self._rest.exists(path), "the default account")
        team = Team(self._control_plane, self._rest, name)
        until(lambda: team.apply(pod(name="probe"), dry_run=True).ok, "Sluice's notice")
        return team

    def _admit(self, borrower: Team) -> None:
        self.seen.admitted = borrower.apply(_pod("b0"), _pod("b1"))
        self.seen.released = [borrower.running("b0"), borrower.running("b1")]

    def _evict(self, owner: Team, borrower: Team) -> None:
        owner.create(_pod("w0"))
        self.seen.notice = _find(borrower, lambda item: _annotation(item, _NOTICE))
        owner.running("w0")
        self.seen.evicted_by = self._audited("Evict", "Done")
        (left,) = borrower.pods()
        self.seen.released.append(left)

    def _delete(self, owner: Team, borrower: Team) -> None:
        budget = {"selector": {"matchLabels": {"app": "work"}}, "maxUnavailable": 0}
        metadata = {"name": "never"}
        borrower.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": metadata,
                "spec": budget,
            }
        )
        owner.create(_pod("w1"))
        owner.running("w1")
        self.seen.deleted_by = self._audited("Delete", "Done")

    def _wait(self, owner: Team) -> None:
        owner.create(_pod("w2"))
        self.seen.reason = _find(owner, lambda item: _annotation(item, "state.sluice.dev/reason"))
        self.seen.status = until(
            lambda: status if (status := self._status()).get("pending") == 1 else {},
            "the status counts who waits",
        )

    def _refuse(self, owner: Team) -> None:
        tenant = {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "Tenant",
            "metadata": {"name": "wrong"},
            "spec": {"namespaces": {"names": [OWNER]}},
        }
        self.seen.refused = owner.apply(tenant)

    def _forget(self) -> None:
        self.seen.mirrors = self._mirrors()
        for name in ("passing", "settings"):
            (self._policies / f"{name}.yaml").unlink()
        until(lambda: not self._rest.exists(f"{_SLUICE}/settings/cluster"), "mirrors go")
        until(lambda: not self._rest.exists(f"{_SLUICE}/exemptions/visitors"), "mirrors go")
        self.seen.mirrors_later = self._mirrors()

    def _change_leader(self, owner: Team) -> None:
        (leader,) = [name for name, leads in self._leaders().items() if leads]
        before = len(_repeats(owner))
        began = time.monotonic()
        self._reconcilers.pop(leader).stop()
        self.seen.lease_after_stop = self._lease()
        until(lambda: self._leaders() and all(self._leaders().values()), "another leads", _SECONDS)
        self.seen.failover_seconds = time.monotonic() - began
        self.seen.leaders.append(self._leaders())
        until(lambda: len(_repeats(owner)) > before, "an Event is counted up", _SECONDS)
        owner.kubectl("delete", "pod", "w0")
        owner.running("w2")

    def _leaders(self) -> dict[str, float]:
        found = {
            name: metric(each.port, "sluice_leader") for name, each in self._reconcilers.items()
        }
        return found if any(found.values()) else {}

    def _lease(self) -> str:
        path = "/apis/coordination.k8s.io/v1/namespaces/sluice/leases/sluice"
        holder: str = self._rest.get(path)["spec"].get("holderIdentity") or ""
        return holder

    def _status(self) -> Json:
        found: Json = self._rest.get(f"{_SLUICE}/tenants/{OWNER}").get("status", {})
        return found

    def _mirrors(self) -> set[str]:
        return {
            f"{kind}/{item['metadata']['name']}"
            for kind in map(plural, API_KINDS)
            for item in self._rest.get(f"{_SLUICE}/{kind}")["items"]
        }

    def _audited(self, action: str, outcome: str) -> str:
        wanted = {"action": action, "outcome": outcome}

        def find() -> str:
            for name, each in self._reconcilers.items():
                lines = each.audit.read_text(encoding="utf-8").splitlines()
                if any(json.loads(line).items() >= wanted.items() for line in lines):
                    return name
            return ""

        return until(find, f"an audit line {wanted}", _SECONDS)


def _pod(name: str) -> Json:
    return pod(
        container(gpus=1),
        name=name,
        labels={"app": "work"},
        nodeSelector={"kubernetes.io/hostname": _NODE},
    )


def _find(team: Team, look: Callable[[Json], str]) -> str:
    """Return what `look` finds first in a pod of a team."""
    return until(
        lambda: next(filter(None, map(look, team.pods())), ""), f"in {team.namespace}", _SECONDS
    )


def _annotation(item: Any, key: str) -> str:
    found: str = item["metadata"].get("annotations", {}).get(key, "")
    return found


def _repeats(team: Team) -> list[Json]:
    """Return the Events that were seen more than once."""
    return [event for event in team.events() if (event.get("count") or 1) > 1]
