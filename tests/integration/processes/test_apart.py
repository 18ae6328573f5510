# SPDX-License-Identifier: Apache-2.0
"""`sluice serve` and `sluice reconcile` with the accounts that are rendered for them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from policies.quota.notice import read_notice
from policies.vendors import build_catalog
from reconciler.manifests.access import Account, accounts
from reconciler.manifests.options import ManifestOptions, Processes
from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.replica import Launch
from tests.integration.processes.api_log import ApiLog, Permission
from tests.integration.processes.probing import readiness
from tests.integration.processes.story import Seen, Story, reconcile, write_documents
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import until

pytestmark = pytest.mark.timeout(240)

_WRITER: Final = "sluice"
_READER: Final = "sluice-webhook"
_PODGROUPS: Final = (
    "--feature-gates=GenericWorkload=true",
    "--runtime-config=scheduling.k8s.io/v1beta1=true",
)


@pytest.fixture(scope="module")
def api_log(tmp_path_factory: pytest.TempPathFactory) -> ApiLog:
    return ApiLog(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="module")
def cluster(binaries: Mapping[str, Path], api_log: ApiLog) -> Iterator[ControlPlane]:
    """A control plane of its own, whose API server writes down who asks for what."""
    with ControlPlane(binaries, api_log.options(*_PODGROUPS)) as started:
        yield started


@pytest.fixture(scope="module")
def sluice(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InstalledSluice]:
    """The webhook alone, installed as one that is apart, in a cluster that ends with it."""
    directory = tmp_path_factory.mktemp("apart")
    write_documents(directory / "policies")
    launch = Launch(command="serve")
    with InstalledSluice(cluster, directory / "policies", directory / "run", launch) as installed:
        installed.leave_objects()
        yield installed


@pytest.fixture(scope="module")
def story(cluster: ControlPlane, sluice: InstalledSluice) -> Iterator[Story]:
    with closing(Rest(cluster)) as rest:
        told = Story(cluster, rest, sluice)
        told.tell()
        yield told


@pytest.fixture
def seen(story: Story) -> Seen:
    return story.seen


def test_pods_are_rewritten_by_the_one_and_charged_and_released_by_the_other(seen: Seen) -> None:
    assert seen.admitted is not None
    assert seen.admitted.ok, seen.admitted.error
    for pod in seen.released:
        annotations = pod["metadata"]["annotations"]
        assert "whole-h100" in annotations["state.sluice.dev/decision"]
        assert "state.sluice.dev/charge" in annotations
        assert not pod["spec"].get("schedulingGates")


def test_a_guarantee_is_taken_back_with_notice_eviction_and_deletion(seen: Seen) -> None:
    notice = read_notice(seen.notice)
    assert notice is not None
    assert (notice.beneficiary, notice.rule) == ("owner/w0", "ReclaimPolicy/quick")
    assert seen.evicted_by
    assert seen.deleted_by == seen.evicted_by
    assert {"ReclaimNotice"} <= {event["reason"] for event in seen.events}


def test_who_waits_is_told_and_counted(seen: Seen) -> None:
    assert seen.reason
    assert seen.status["pending"] == 1
    assert seen.status["used"] == "2"


def test_documents_of_files_are_mirrored_and_their_mirrors_go_with_them(seen: Seen) -> None:
    assert seen.mirrors_later == {
        "tenants/owner",
        "tenants/borrower",
        "sharingprofiles/h100",
        "gpupolicies/whole-h100",
        "gpupools/lab",
        "reclaimpolicies/quick",
    }
    assert seen.mirrors - seen.mirrors_later == {
        "settings/cluster",
        "tenants/guest",
        "sharingprofiles/h200",
        "gpupolicies/guests",
        "gpupools/reserved",
        "reclaimpolicies/slow",
        "exemptions/visitors",
    }


def test_a_bad_document_is_refused_by_the_webhook_alone(seen: Seen) -> None:
    assert seen.refused is not None
    assert not seen.refused.ok
    assert "[InvalidDocument]" in seen.refused.error


def test_one_reconciler_leads_and_when_it_is_stopped_it_gives_the_lease_back(seen: Seen) -> None:
    before, after = seen.leaders
    assert sorted(before.values()) == [0.0, 1.0]
    assert list(after.values()) == [1.0]
    assert seen.lease_after_stop not in {name for name, leads in before.items() if leads}
    # Far less than the Lease's own term, which would have had to run out.
    assert seen.failover_seconds < 10


def test_nothing_is_forbidden_to_either(story: Story, api_log: ApiLog) -> None:
    for account in (_WRITER, _READER):
        assert api_log.forbidden(account) == set()
    assert "forbidden" not in story.logs().lower()


def test_nothing_is_granted_in_vain(story: Story, api_log: ApiLog) -> None:
    options = ManifestOptions(build_catalog(), ca_bundle=b"of files", processes=Processes.APART)
    for account in accounts(options):
        used = api_log.used(account.name)
        assert _granted(account) - used <= _unseen(account), account.name
        assert used <= _granted(account)


def _granted(account: Account) -> set[Permission]:
    return _permissions((*account.cluster_rules, *account.own_rules))


def _unseen(account: Account) -> set[Permission]:
    """Return what the log cannot show, or what needs an accident.

    A server-side apply that creates is logged as a patch; a Lease is created where it was deleted.
    """
    created = {(g, r, v) for g, r, v in _granted(account) if (g, v) == ("sluice.dev", "create")}
    return created | {("coordination.k8s.io", "leases", "create")}


def _permissions(rules: Iterable[Any]) -> set[Permission]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_a_standby_is_ready_without_leading_and_not_while_the_api_server_is_gone(
    cluster: ControlPlane, story: Story, sluice: InstalledSluice
) -> None:
    standby = sluice.add_replica("standby", reconcile("standby"))
    status, conditions = readiness(standby.port)
    assert status == 200
    assert conditions == {
        "policies-loaded": True,
        "api-documents-synced": True,
        "documents-valid": True,
        "api-reachable": True,
    }
    cluster.components.stop_component("kube-apiserver")
    try:
        until(lambda: readiness(standby.port)[0] == 503, "it is not ready", 60)
        assert readiness(standby.port)[1]["api-reachable"] is False
    finally:
        cluster.components.start_component("kube-apiserver")
    until(lambda: readiness(standby.port)[0] == 200, "it is ready again", 60)
