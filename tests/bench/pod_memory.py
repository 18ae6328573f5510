# SPDX-License-Identifier: Apache-2.0
"""What 50,000 pods cost the reconciler: memory of views and store, time of views and ledger.

`python -m tests.bench.pod_memory` ends with one line of JSON. Pods are parsed page by page as a
list is, so that no two of them share a string unless the views make them.
"""

import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from policies.model.facts import NodeFacts
from policies.model.keys import CHARGE
from policies.quota.charge import ChargeRecord
from policies.quota.charging import amount_of, cost
from policies.quota.ledger import Ledger
from policies.quota.pods import QuotaPod
from policies.quota.tariff import Tariff
from reconciler.kube.store import Draft, Store
from reconciler.quota.view import PodViews
from tests.bench.machine import describe_machine
from tests.bench.pods import NAMESPACE, gpu_pod
from tests.support.builders import policy_set, rewritten

PODS: Final = 50_000
WAITING: Final = 10_000
TEAMS: Final = 200
NODES: Final = 1213
PAGE: Final = 500
_SIZES: Final = 60
"""Different requests, since teams' servers are not all of one size."""
_GPU_EVERY: Final = 3
"""One pod in so many takes no GPU: agents, gateways, jobs of the rest of the company."""

Pages = list[bytes]


def main() -> int:
    """Measure, print the line, return the exit code."""
    sys.stdout.write(json.dumps(measure(PODS, WAITING)) + "\n")
    return 0


def measure(count: int, waiting: int) -> dict[str, Any]:
    """Return the figures of so many pods, of which some wait."""
    listed = list(pages(count, waiting))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    store, views = _listed(listed)
    gc.collect()
    stored_bytes = tracemalloc.get_traced_memory()[0] - before
    pods = store.values()
    ledger = _ledger()
    between = tracemalloc.get_traced_memory()[0]
    for pod in pods:
        ledger.put(pod)
    ledger_bytes = tracemalloc.get_traced_memory()[0] - between
    tracemalloc.stop()
    listing_seconds, _ = _timed(lambda: _listed(listed))
    put_seconds, _ = _timed(lambda: _fill(_ledger(), pods))
    return {
        "bench": "pod-memory",
        "pods": count,
        "waiting": waiting,
        "shapes": views.shapes,
        "bytes_per_pod": stored_bytes // count,
        "stored_mib": stored_bytes / 2**20,
        "ledger_mib": ledger_bytes / 2**20,
        "list_seconds": listing_seconds,
        "ledger_put_seconds": put_seconds,
        **describe_machine(),
    }


def _timed(act: Callable[[], object]) -> tuple[float, object]:
    """Return the processor seconds of an act, and its result: other programs do not count."""
    started = time.process_time()
    found = act()
    return time.process_time() - started, found


def _listed(pages: Pages) -> tuple[Store[QuotaPod], PodViews]:
    views = PodViews()
    store: Store[QuotaPod] = Store(views.view)
    draft: Draft[QuotaPod] = store.draft()
    for page in pages:
        for item in orjson.loads(page):
            draft.add(item)
    list(store.replace(draft, 1))
    return store, views


def _ledger() -> Ledger:
    tariff = Tariff(policy_set())
    for number in range(NODES):
        tariff.put_node(NodeFacts(f"node-{number}", {}, {}))
    return Ledger(lambda namespace: namespace.removesuffix("-prod"), tariff)


def _fill(ledger: Ledger, pods: tuple[QuotaPod, ...]) -> None:
    for pod in pods:
        ledger.put(pod)


def pages(count: int, waiting: int) -> Iterator[bytes]:
    templates = [_template(team) for team in range(TEAMS)]
    views = PodViews()
    for start in range(0, count, PAGE):
        numbers = range(start, min(start + PAGE, count))
        yield orjson.dumps(
            [_pod(templates[n % TEAMS], n, views, is_waiting=n < waiting) for n in numbers]
        )


def _template(team: int) -> dict[str, Any]:
    """Return the pod of a team's workload as it is stored, gated; some take no GPU."""
    raw = gpu_pod(team)
    raw["metadata"]["namespace"] = NAMESPACE
    for amounts in raw["spec"]["containers"][0]["resources"].values():
        amounts["cpu"] = str(1 + team % _SIZES)
    if team % _GPU_EVERY == 0:
        for container in raw["spec"]["containers"]:
            for amounts in container["resources"].values():
                amounts.pop("nvidia.com/gpu", None)
        return raw
    found: dict[str, Any] = rewritten(raw)
    return found


def _pod(
    template: dict[str, Any], number: int, views: PodViews, *, is_waiting: bool
) -> dict[str, Any]:
    """Return one of a workload's pods; each third is of an Indexed Job, whose labels differ."""
    raw: dict[str, Any] = orjson.loads(orjson.dumps(template))
    metadata, spec = raw["metadata"], raw["spec"]
    team = number % TEAMS
    metadata |= {
        "name": f"{metadata['generateName']}{number:05d}",
        "namespace": f"team-{team:03d}-prod",
        "uid": f"8d1f1c0e-4c7b-4a11-9a77-{number:012d}",
        "resourceVersion": str(10_000_000 + number),
        "creationTimestamp": "2031-05-17T12:00:00Z",
        "managedFields": [{"manager": "kube-controller-manager", "operation": "Update"}],
    }
    if number % 3 == 0:
        metadata["labels"]["batch.kubernetes.io/job-completion-index"] = str(number)
    if is_waiting and "schedulingGates" in spec:
        return raw
    if "schedulingGates" in spec:
        metadata["annotations"][CHARGE] = _charge(raw, number, views)
        del spec["schedulingGates"]
    spec["nodeName"] = f"node-{number % NODES}"
    raw["status"] = {"phase": "Running", "podIP": f"10.0.{number // 256}.{number % 256}"}
    return raw


def _charge(raw: dict[str, Any], number: int, views: PodViews) -> str:
    view = views.view(raw)
    assert view is not None
    policies = policy_set()
    record = ChargeRecord(
        tenant=f"team-{number % TEAMS:03d}",
        pool="",
        amount=cost(amount_of(view.shape, policies)),
        generation=policies.generation,
        at=1_936_785_600 + number // 10,
    )
    return record.to_annotation()


if __name__ == "__main__":
    raise SystemExit(main())
