# SPDX-License-Identifier: Apache-2.0
"""What large policy sets cost: loading, memory, reviews, and reviews while a set is reloaded.

The set of the webhook bench grows to 100 and 1,000 policies with as many tenants; the same three
policies match. `python -m tests.bench.sets` ends with one line of JSON.
"""

import gc
import json
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from policies.decide import decide
from policies.documents.source import SourceText
from policies.model.facts import ClusterFacts, Facts
from policies.model.policyset import PolicySet
from policies.model.request import Operation, Phase, Request, User
from reconciler.runtime.document_files import read_documents
from reconciler.runtime.loading import Compiler
from tests.bench.machine import describe_machine
from tests.bench.pods import NAMESPACE, gpu_pod

HERE: Final = Path(__file__).resolve().parent
SIZES: Final = (10, 100, 1000)
_PODS: Final = 400
_ROUNDS: Final = 7

_TENANT: Final = """apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: tenant-{0}}}
spec:
  namespaces: {{names: [tenant-{0}-a, tenant-{0}-b]}}
  quota: {{gpus: {{guarantee: 8, ceiling: 16}}}}
"""
_POLICY: Final = """apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: policy-{0}}}
spec:
  order: {0}
  match:
    tenants: [tenant-{0}]
    when:
    - {{name: small, expression: 'gpu.devices < {0} || object.metadata.labels["tier"] == "{0}"'}}
  rewrite: {{profile: whole}}
  validate:
  - name: own-images
    expression: object.spec.containers.all(c, c.image.startsWith("registry-{0}/"))
    message: use the registry of tenant-{0}
"""


def sources(size: int, registry: str = "registry") -> tuple[SourceText, ...]:
    """Return the bench's own ten policies and tenants, and more that do not match its pod.

    Another registry changes an expression of each of those.
    """
    own = read_documents(HERE / "policies").sources
    more = range(10, size)
    texts = [_TENANT.format(number) for number in more] + [
        _POLICY.format(number) for number in more
    ]
    text = "---\n".join(texts).replace("registry-", f"{registry}-")
    return (*own, SourceText("more.yaml", text.encode()))


def main() -> int:
    """Measure, print a table and a line of JSON."""
    compiler, facts = Compiler(), Facts(ClusterFacts({}), datetime.now(UTC))
    report: dict[str, Any] = {"bench": "sets", "sets": {}}
    loaded: dict[int, PolicySet] = {}
    for size in SIZES:
        seconds, loaded[size] = _load(compiler, size)
        report["sets"][str(size)] = {"load_seconds": round(seconds, 3)}
    gc.collect()
    gc.freeze()
    for _ in range(_ROUNDS):
        for size, policies in loaded.items():
            times = report["sets"][str(size)].setdefault("review_us", [])
            times.append(_review_us(policies, facts))
    for found in report["sets"].values():
        found["review_us"] = round(statistics.median(found["review_us"]), 1)
    small, large = (report["sets"][str(size)]["review_us"] for size in (SIZES[0], SIZES[-1]))
    report["speed_of_largest"] = round(small / large, 3)
    seconds, slowest_ms = _reloading(compiler, loaded[SIZES[-1]], facts)
    report["reload_seconds"] = round(seconds, 2)
    report["reload_slowest_review_ms"] = round(slowest_ms, 1)
    report["memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    report |= describe_machine()
    _print(report)
    return 0


def _load(compiler: Compiler, size: int, registry: str = "registry") -> tuple[float, PolicySet]:
    texts = sources(size, registry)
    start = time.perf_counter()
    result = compiler.load(texts)
    seconds = time.perf_counter() - start
    if result.policy_set is None:
        raise SystemExit("\n".join(map(str, result.problems)))
    return seconds, result.policy_set


def _requests() -> list[Request]:
    pods = (orjson.loads(orjson.dumps(gpu_pod(number))) for number in range(_PODS))
    return [
        Request(
            phase=Phase.MUTATE,
            operation=Operation.CREATE,
            group="",
            resource="pods",
            subresource="",
            namespace=NAMESPACE,
            name="",
            user=User("bench"),
            object=pod,
            old_object=None,
        )
        for pod in pods
    ]


def _review_us(policies: PolicySet, facts: Facts) -> float:
    """Return CPU microseconds of a decision; all pods differ."""
    requests = _requests()
    matched = decide(policies, facts, requests[0]).matched
    if len(matched) != 3:
        raise SystemExit(f"these policies matched: {matched}")
    start = time.process_time()
    for request in requests:
        decide(policies, facts, request)
    return 1e6 * (time.process_time() - start) / len(requests)


def _reloading(compiler: Compiler, policies: PolicySet, facts: Facts) -> tuple[float, float]:
    """Load a large set, every policy changed, beside the reviews of another.

    Returns the seconds that took, and the milliseconds of the slowest review meanwhile.
    """
    requests = _requests()
    loader = threading.Thread(target=_quietly(lambda: _load(compiler, SIZES[-1], "mirror")))
    slowest, begun = 0.0, time.perf_counter()
    loader.start()
    while loader.is_alive():
        for request in requests:
            start = time.perf_counter()
            decide(policies, facts, request)
            slowest = max(slowest, time.perf_counter() - start)
    loader.join()
    return time.perf_counter() - begun, 1e3 * slowest


def _quietly(act: Callable[[], object]) -> Callable[[], None]:
    return lambda: (act(), None)[1]


def _print(report: dict[str, Any]) -> None:
    out = sys.stdout
    out.write("| policies and tenants | load s | review CPU us |\n| --- | --- | --- |\n")
    for size, found in report["sets"].items():
        out.write(f"| {size} | {found['load_seconds']:.2f} | {found['review_us']:.0f} |\n")
    out.write(
        f"\nthe largest set reviews at {report['speed_of_largest']} of the smallest's speed; "
        f"reloading it beside reviews takes {report['reload_seconds']} s, and the slowest of them "
        f"{report['reload_slowest_review_ms']} ms; "
        f"{report['memory_mib']} MiB in all\n{json.dumps(report)}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
