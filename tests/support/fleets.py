# SPDX-License-Identifier: Apache-2.0
"""A few nodes with pods on them, as `kubectl get nodes,pods -A -o json` has them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from policies.model.keys import CHARGE
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from reconciler.cli.card_map import card_map
from reconciler.cli.fleet import Fleet, Readers, assemble
from reconciler.cli.map_svg import map_svg
from tests.controlplane import nodes
from tests.support.builders import GPU, MIG, SHARED, catalog

Json = dict[str, Any]


def ready(raw: Mapping[str, object], **annotations: str) -> Json:
    """Return a simulated node that is Ready, with these annotations (`_` is `-`)."""
    node = orjson.loads(orjson.dumps(raw))
    node["kind"] = "Node"
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    for key, value in annotations.items():
        node["metadata"].setdefault("annotations", {})[f"gpu-scheduler/{key.replace('_', '-')}"] = (
            value
        )
    return dict(node)


def pod(
    name: str,
    node: str,
    devices: Mapping[str, int],
    *,
    tenant: str = "",
    mib: int = 0,
    namespace: str = "team",
) -> Json:
    """Return a running pod on a node; `tenant` is whom it is charged to."""
    annotations = {"sluice.dev/gpu-memory": f"{mib}Mi"} if mib else {}
    if tenant:
        charge = ChargeRecord(tenant, "", Amount({1: 1}, 0, {}), "7c1f", 1)
        annotations[CHARGE] = charge.to_annotation()
    limits = {resource: str(count) for resource, count in devices.items()}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "annotations": annotations,
        },
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "resources": {"limits": limits}}],
        },
        "status": {"phase": "Running"},
    }


def example() -> list[Json]:
    """Return nodes of every kind, one of them cordoned, and the pods of three tenants on them."""
    cordoned = ready(nodes.whole("a100-whole", nodes.A100))
    cordoned["spec"]["unschedulable"] = True
    lost = ready(nodes.amd("mi300x"))
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return [
        cordoned,
        ready(nodes.cpu("cpu")),
        ready(nodes.mig_mixed("h100-mig")),
        ready(
            nodes.time_sliced("h100-shared"),
            memory_used="67584",
            memory_total="652472",
            updated_at="2027-01-15T08:00:00Z",
        ),
        ready(nodes.whole("h100-whole")),
        lost,
        pod("ft-1", "h100-whole", {GPU: 4}, tenant="research"),
        pod("ft-2", "h100-whole", {GPU: 2}, tenant="research", mib=40000),
        pod("chat-1", "h100-shared", {SHARED: 1}, tenant="chat", mib=8192),
        pod("chat-2", "h100-shared", {SHARED: 1}, tenant="chat"),
        *(pod(f"cut-{i}", "h100-mig", {MIG: 1}, tenant="finance", mib=4096) for i in range(3)),
        pod("stranger", "a100-whole", {GPU: 1}),
        pod("web", "cpu", {}),
    ]


def fleet(items: Iterable[Json]) -> Fleet:
    """Return the fleet of raw objects."""
    readers, listed = Readers(catalog()), list(items)
    seen = [readers.node(item) for item in listed if item["kind"] == "Node"]
    pods = [readers.pod(item) for item in listed if item["kind"] == "Pod"]
    return assemble(catalog(), seen, pods)


def write(items: Iterable[Json], path: Path) -> Path:
    """Write a List, as kubectl does."""
    path.write_bytes(orjson.dumps({"kind": "List", "apiVersion": "v1", "items": list(items)}))
    return path


def pictured() -> list[Json]:
    """Return fifteen nodes for a picture, and the pods of six tenants on them."""
    tenants = ("chat", "finance", "forecast", "research", "search", "vision")
    found: list[Json] = []
    for number in range(5):
        shared, whole, cut = (f"{kind}-{number}" for kind in ("h100-shared", "a100", "h100-mig"))
        found += [ready(nodes.time_sliced(shared)), ready(nodes.mig_mixed(cut))]
        found.append(ready(nodes.whole(whole, nodes.A100)))
        for share in range(9 + 4 * number):
            name = f"share-{number}-{share}"
            found.append(pod(name, shared, {SHARED: 1}, tenant=tenants[share % 3]))
        for card in range(3):
            tenant = tenants[(number + card) % 6]
            found.append(pod(f"train-{number}-{card}", whole, {GPU: 2}, tenant=tenant))
        for instance in range(6 * number):
            tenant = tenants[3 + instance % 3]
            found.append(pod(f"cut-{number}-{instance}", cut, {MIG: 1}, tenant=tenant))
    return found


def picture() -> str:
    """Return the map of `pictured` as an SVG."""
    return map_svg(card_map(fleet(pictured()))).decode()
