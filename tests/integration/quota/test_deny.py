# SPDX-License-Identifier: Apache-2.0
"""Tenants that are full, on the real control plane: one is refused more, the other waits."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from typing import Final

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.integration.sluice.objects import GATE, Json, gates, pod, workload
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, new_team, until

REASON: Final = "state.sluice.dev/reason"
DENIES: Final = "denies"
QUEUES: Final = "queues"
_TENANTS: Final = "/apis/sluice.dev/v1alpha1/tenants"
_BURST: Final = 24

_DOCUMENTS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: denies}
spec:
  namespaces: {selector: {matchLabels: {tenant: denies}}}
  quota: {gpus: {guarantee: 2, ceiling: 2}}
  whenOverQuota: Deny
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: queues}
spec:
  namespaces: {selector: {matchLabels: {tenant: queues}}}
  quota: {gpus: {guarantee: 2, ceiling: 2}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: h100}
spec: {mode: Exclusive, products: [NVIDIA-H100-80GB-HBM3]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: whole-h100}
spec: {order: 1, rewrite: {profile: h100}}
"""

_FULL: Final = (
    "[OverCeiling] exceeded quota: tenant denies uses 2 of 2 GPUs, this pod asks 1: free 0"
)


@pytest.fixture(scope="module")
def sluice(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InstalledSluice]:
    directory = tmp_path_factory.mktemp("deny")
    policies = directory / "policies"
    policies.mkdir()
    (policies / "all.yaml").write_text(_DOCUMENTS, encoding="utf-8")
    with InstalledSluice(control_plane, policies, directory / "run") as installed:
        yield installed


@pytest.fixture
def team(
    sluice: InstalledSluice, control_plane: ControlPlane, rest: Rest
) -> Iterator[Callable[[str], Team]]:
    """A function from a tenant to a fresh namespace of it, while nobody else uses its quota."""
    sluice.check()
    made: list[Team] = []

    def make(tenant: str) -> Team:
        until(lambda: used(rest, tenant) == "0", f"tenant {tenant} to use nothing")
        found = new_team(control_plane, rest, tenant)
        made.append(found)
        return found

    yield make
    for each in made:
        rest.request("DELETE", f"{each.path}/pods")
        rest.request("DELETE", each.path)


def used(rest: Rest, tenant: str) -> str:
    _, answer = rest.request("GET", f"{_TENANTS}/{tenant}")
    found: str = answer.get("status", {}).get("used", "")
    return found


def released(pods: list[Json]) -> set[str]:
    return {found["metadata"]["name"] for found in pods if GATE not in gates(found)}


def fill(team: Team, rest: Rest, tenant: str) -> None:
    """Use both GPUs, and wait until the tenant's status tells it."""
    team.create(pod(name="one"), pod(name="two"))
    until(lambda: len(released(team.pods())) == 2, "both pods released")
    until(lambda: used(rest, tenant) == "2", "the tenant's status")


def test_a_tenant_that_denies_is_told_the_numbers_once_it_is_full_and_until_others_end(
    team: Callable[[str], Team], rest: Rest
) -> None:
    namespace = team(DENIES)
    fill(namespace, rest, DENIES)
    until(lambda: _FULL in namespace.apply(pod(name="x"), dry_run=True).error, "what is used")

    real = namespace.apply(pod(name="three"))
    assert not real.ok
    assert _FULL in real.error
    assert "at most" not in real.error

    told = namespace.apply(workload("Deployment", pod(), replicas=1))
    assert told.ok, told.error
    assert [line for line in told.warnings if "will be refused" in line and _FULL in line]
    namespace.kubectl("delete", "deployment/work", "--wait=false")

    namespace.kubectl("delete", "pod/one")
    until(lambda: namespace.apply(pod(name="three")).ok, "room for another")
    until(lambda: "three" in released(namespace.pods()), "its release")


def test_a_tenant_that_queues_has_its_pods_wait_with_a_reason(
    team: Callable[[str], Team], rest: Rest
) -> None:
    namespace = team(QUEUES)
    fill(namespace, rest, QUEUES)

    answer = namespace.apply(pod(name="three"))
    assert answer.ok, answer.error
    until(lambda: REASON in namespace.pod("three")["metadata"]["annotations"], "its reason")
    assert namespace.pod("three")["metadata"]["annotations"][REASON].startswith("Ceiling: ")
    assert released(namespace.pods()) == {"one", "two"}

    namespace.kubectl("delete", "pod/one")
    until(lambda: "three" in released(namespace.pods()), "its release")


def test_of_a_burst_that_is_faster_than_any_status_none_is_released_beyond_the_ceiling(
    team: Callable[[str], Team], rest: Rest, control_plane: ControlPlane
) -> None:
    namespace = team(DENIES)
    path = f"{namespace.path}/pods"

    def create(number: int) -> tuple[int, Json]:
        with closing(Rest(control_plane)) as connection:
            return connection.request("POST", path, pod(name=f"p{number}"))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(create, range(_BURST)))

    refused = [answer for status, answer in answers if status != HTTPStatus.CREATED]
    assert all("[OverCeiling]" in answer["message"] for answer in refused), refused
    accepted = _BURST - len(refused)
    assert accepted > 2, "the burst was not faster than the status"

    def most_released() -> bool:
        pods = namespace.pods()
        assert len(pods) == accepted
        assert len(released(pods)) <= 2
        waiting = (p for p in pods if GATE in gates(p))
        return all(REASON in p["metadata"].get("annotations", {}) for p in waiting)

    until(most_released, "every other one of them told why it waits")
    assert len(released(namespace.pods())) == 2
    until(lambda: used(rest, DENIES) == "2", "the tenant's status")
