# SPDX-License-Identifier: Apache-2.0
"""What the manifests render: a real cluster takes it, and its rights are enough and no more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.vendors import build_catalog
from reconciler.kube.document_resources import API_KINDS, plural
from reconciler.manifests.crds import crds
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.render import render_groups
from reconciler.manifests.scheduler import Asker, SchedulerOptions, scheduler_objects
from tests.controlplane import ControlPlane
from tests.controlplane.access import Server, write_kubeconfig
from tests.controlplane.extender import ExtenderLaunch, ExtenderProcess
from tests.controlplane.replica import ROOT

_NAMESPACE = "sluice-placement"
_KINDS = [f"{plural(kind)}.sluice.dev" for kind in API_KINDS]
_LEASED = ExtenderLaunch(
    arguments=(
        *("--lease-namespace", _NAMESPACE, "--lease-name", "placed-extender"),
        *("--policies", str(ROOT / "docs/examples/policies")),
    )
)
_POOL = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "odd"},
    "spec": {
        "nodes": {"selector": {"matchLabels": {"pool": "odd"}}},
        "placement": {"strategy": "Pack", "spreadAbove": 50},
    },
}
"""What the API server takes, and no set of documents has."""


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[SchedulerOptions]:
    """The objects of extender and second scheduler, for as long as the module runs."""
    options = ManifestOptions(build_catalog(), name="placed", namespace=_NAMESPACE, replicas=0)
    wanted = SchedulerOptions(options, Asker.SECOND)
    objects: list[Any] = [*render_groups(options)["namespace"], *scheduler_objects(wanted)]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    kinds = {"apiVersion": "v1", "kind": "List", "items": list(crds())}
    control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=kinds)
    control_plane.wait_kinds(_KINDS)
    control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=listed)
    yield wanted
    control_plane.kubectl("delete", "--wait=false", "--filename=-", stdin=listed)
    control_plane.kubectl("delete", "--wait=true", "crd", *_KINDS)


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, installed: SchedulerOptions, tmp_path: Path) -> Path:
    """What the extender's own service account reaches the API server with."""
    arguments = ("create", "token", installed.extender, "-n", _NAMESPACE)
    token = control_plane.kubectl(*arguments).stdout.strip()
    server = Server(control_plane.url, control_plane.ca_bundle)
    write_kubeconfig(tmp_path / "kubeconfig", server, installed.extender, token)
    return tmp_path / "kubeconfig"


def test_an_extender_is_ready_with_nothing_but_the_rights_that_are_rendered(
    control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    with ExtenderProcess(tmp_path, _LEASED) as extender:
        extender.start(kubeconfig)
        extender.wait_answering('"message":"generation ')
        control_plane.kubectl("create", "--filename=-", stdin=_POOL)
        extender.wait_answering("spec.placement.spreadAbove: does nothing with strategy Pack")
        lease = control_plane.get("lease", "placed-extender", "-n", _NAMESPACE)
        assert lease["spec"]["holderIdentity"]
        assert "forbidden" not in extender.log.read_text(encoding="utf-8").lower()


def test_of_two_extenders_one_is_ready_and_the_other_once_that_is_gone(
    kubeconfig: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    with (
        ExtenderProcess(tmp_path, _LEASED) as first,
        ExtenderProcess(tmp_path / "other", _LEASED) as second,
    ):
        first.start(kubeconfig)
        second.launch(kubeconfig)
        second.wait_answering("another extender is active")
        first.stop()
        second.wait_ready()


@pytest.mark.parametrize(
    ("verb", "resource", "allowed"),
    [
        ("patch", "nodes", "yes"),
        ("watch", "pods", "yes"),
        ("watch", "gpupools.sluice.dev", "yes"),
        ("patch", "gpupools.sluice.dev", "no"),
        ("delete", "pods", "no"),
        ("update", "pods", "no"),
        ("get", "secrets", "no"),
    ],
)
def test_the_extender_may_do_what_it_needs_only(
    control_plane: ControlPlane, installed: SchedulerOptions, verb: str, resource: str, allowed: str
) -> None:
    account = f"system:serviceaccount:{_NAMESPACE}:{installed.extender}"
    asked = ("auth", "can-i", verb, resource, f"--as={account}")
    assert control_plane.kubectl(*asked, check=False).stdout.strip() == allowed
