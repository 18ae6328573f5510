# SPDX-License-Identifier: Apache-2.0
"""The second scheduler as it is rendered: a real process that has its pods, and no others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from certs.files import read_ca_bundle
from policies.vendors import build_catalog
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.render import render_groups
from reconciler.manifests.scheduler import Asker, SchedulerOptions, scheduler_objects
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.access import Server, write_kubeconfig
from tests.controlplane.components import SCHEDULER
from tests.controlplane.extender import ExtenderLaunch, ExtenderProcess
from tests.controlplane.second_scheduler import Rendered, SecondScheduler
from tests.integration.extender.cluster import by_node, create, pod, wait_bound, wait_refused

_NAMESPACE = "sluice-second"
_NAME = "second"
_NODE = "second-0"
_LEASED = ExtenderLaunch(
    arguments=("--lease-namespace", _NAMESPACE, "--lease-name", f"{_NAME}-extender")
)
_MIB = nodes.H100.memory_mib


@dataclass(frozen=True, slots=True)
class Installed:
    """What was installed, and the scheduler that runs."""

    options: SchedulerOptions
    scheduler: SecondScheduler


@pytest.fixture(scope="module")
def installed(
    control_plane: ControlPlane,
    binaries: Mapping[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    """Extender and second scheduler beside the cluster's own, each with its own account."""
    directory = tmp_path_factory.mktemp("second")
    with ExtenderProcess(directory, _LEASED) as extender:
        options = ManifestOptions(
            build_catalog(), _NAME, _NAMESPACE, ca_bundle=read_ca_bundle(extender.ca)
        )
        wanted = SchedulerOptions(options, Asker.SECOND, url=extender.url)
        rendered: tuple[Any, ...] = scheduler_objects(wanted)
        # Nobody pulls images here: what the Deployments say is run below.
        applied = [
            *render_groups(options)["namespace"],
            *(each for each in rendered if each["kind"] != "Deployment"),
        ]
        listed = {"apiVersion": "v1", "kind": "List", "items": applied}
        control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=listed)
        # The binding in kube-system must not outlive the module.
        try:
            extender.start(_kubeconfig(control_plane, wanted.extender, directory))
            binary = binaries[SCHEDULER]
            with SecondScheduler(Rendered(rendered, wanted.scheduler), binary, directory) as second:
                second.start(_kubeconfig(control_plane, wanted.scheduler, directory))
                yield Installed(wanted, second)
                second.check()
        finally:
            control_plane.kubectl("delete", "--wait=false", "--filename=-", stdin=listed)


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[Mapping[str, str]]:
    """A node of one card that four may share; returns what selects it."""
    control_plane.create_nodes([nodes.time_sliced(_NODE, count=1, replicas=4)])
    yield {"kubernetes.io/hostname": _NODE}
    control_plane.kubectl("delete", "node", _NODE)


def test_pods_that_name_it_are_bound_by_it_through_the_extender_and_others_are_not(
    control_plane: ControlPlane, installed: Installed, namespace: str, node: Mapping[str, str]
) -> None:
    second = installed.options.scheduler
    placed: dict[str, Any] = {"schedulerName": second, "nodeSelector": node}
    create(control_plane, namespace, [pod("first", mib=_MIB - 10_000, **placed)])
    wait_bound(control_plane, namespace, 1)
    # A share is free, the memory is not, and only the extender knows.
    create(control_plane, namespace, [pod("full", mib=20_000, **placed)])
    assert "GPU memory" in wait_refused(control_plane, namespace, "full")
    create(control_plane, namespace, [pod("other", mib=20_000, nodeSelector=node)])
    bound = wait_bound(control_plane, namespace, 2)
    assert by_node(bound) == {_NODE: ["first", "other"]}
    assert _binders(control_plane, namespace) == {"first": second, "other": "default-scheduler"}


def test_it_holds_the_lease_that_its_configuration_names_and_lacks_no_right(
    control_plane: ControlPlane, installed: Installed
) -> None:
    lease = f"lease/{installed.options.scheduler}"
    held = "--for=jsonpath={.spec.holderIdentity}"
    control_plane.kubectl("wait", "--for=create", lease, "-n", _NAMESPACE, "--timeout=20s")
    control_plane.kubectl("wait", held, lease, "-n", _NAMESPACE, "--timeout=20s")
    assert "forbidden" not in installed.scheduler.log.read_text(encoding="utf-8").lower()


def _kubeconfig(control_plane: ControlPlane, account: str, directory: Path) -> Path:
    """Write what a service account reaches the API server with."""
    token = control_plane.kubectl("create", "token", account, "-n", _NAMESPACE).stdout.strip()
    path = directory / f"{account}.kubeconfig"
    server = Server(control_plane.url, control_plane.ca_bundle)
    write_kubeconfig(path, server, account, token)
    return path


def _binders(control_plane: ControlPlane, namespace: str) -> Mapping[str, str]:
    """Return which scheduler says that it has bound which pod."""
    found = control_plane.get("events", "-n", namespace, "--field-selector=reason=Scheduled")
    return {
        event["involvedObject"]["name"]: event["reportingComponent"] for event in found["items"]
    }
