# SPDX-License-Identifier: Apache-2.0
"""A real API server takes the documents' kinds, the documents, and nothing that is none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.documents.kinds import Kind
from reconciler.kube.document_resources import API_KINDS, plural
from reconciler.manifests.crds import crds
from tests.controlplane import ControlPlane
from tests.integration.manifests.installation import as_list, until

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "docs" / "examples" / "policies").rglob("*.yaml"))
LIBRARY = sorted((ROOT / "policies" / "library").rglob("policy.yaml"))
HEADER = ["NAME", "GUARANTEE", "CEILING", "USED", "BORROWED", "PENDING"]
NAMES = [f"{plural(kind)}.sluice.dev" for kind in API_KINDS]


@pytest.fixture(scope="module")
def defined(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The kinds of documents, and nothing else of Sluice."""
    kubectl = control_plane.kubectl
    kubectl("apply", "--server-side", "--filename=-", stdin=as_list(crds()))
    control_plane.wait_kinds(NAMES)
    yield control_plane
    kubectl("delete", "--wait=true", "crd", *NAMES)


def documents(files: list[Path]) -> list[Any]:
    """Return every document of the files that can be an object."""
    found = [item for file in files for item in yaml.safe_load_all(file.read_text())]
    return [item for item in found if item and item["kind"] in set(map(str, API_KINDS))]


def tenant(**spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": "probe"},
        "spec": {"namespaces": {"names": ["probe"]}, **spec},
    }


def complaint(control_plane: ControlPlane, item: dict[str, Any]) -> str:
    """Return what kubectl says of an object that is not accepted, else nothing."""
    done = control_plane.kubectl(
        "create", "--dry-run=server", "--filename=-", stdin=item, check=False
    )
    return "" if done.returncode == 0 else done.stderr


def test_every_kind_is_established_and_its_schema_is_structural(defined: ControlPlane) -> None:
    for item in defined.get("crd", *NAMES)["items"]:
        status = {c["type"]: c["status"] for c in item["status"]["conditions"]}
        assert status["Established"] == status["NamesAccepted"] == "True"
        assert status.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize("files", [EXAMPLES, LIBRARY], ids=["examples", "library"])
def test_every_document_that_we_publish_is_accepted(
    defined: ControlPlane, files: list[Path]
) -> None:
    items = documents(files)
    assert items

    defined.kubectl("create", "--dry-run=server", "--filename=-", stdin=as_list(items))


def test_every_kind_has_a_published_document() -> None:
    assert {item["kind"] for item in documents([*EXAMPLES, *LIBRARY])} >= {
        *map(str, (Kind.TENANT, Kind.SHARING_PROFILE, Kind.GPU_POLICY, Kind.SETTINGS)),
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"quota": {"gpus": {"guarantee": "32"}}}, "spec.quota.gpus.guarantee"),
        ({"quota": {"gpus": {"guarantee": -1}}}, "spec.quota.gpus.guarantee"),
        ({"cohort": "Main"}, "spec.cohort"),
        ({"namespaces": {"names": ["a", "a"]}}, "spec.namespaces.names"),
        ({"namespaces": {}}, "spec.namespaces"),
        ({"profiles": "whole"}, "spec.profiles"),
    ],
    ids=["text", "negative", "pattern", "twice", "empty", "no-list"],
)
def test_a_wrong_value_is_refused_with_its_field(
    defined: ControlPlane, spec: dict[str, Any], field: str
) -> None:
    assert field in complaint(defined, tenant(**spec))


@pytest.mark.parametrize("gpus", [0, 0.001, 0.125, 0.333, 27.75, 1234.567, 999999.999, 1000000])
def test_every_decimal_of_gpus_is_accepted(defined: ControlPlane, gpus: float) -> None:
    assert complaint(defined, tenant(quota={"gpus": {"ceiling": gpus}})) == ""


def test_an_unknown_field_is_kept_for_sluice_to_refuse(defined: ControlPlane) -> None:
    done = defined.kubectl(
        *("create", "--dry-run=server", "--output=json", "--filename=-"),
        stdin=tenant(quota={"gpus": {"gaurantee": 3}}),
    )
    assert json.loads(done.stdout)["spec"]["quota"]["gpus"] == {"gaurantee": 3}


def test_kubectl_shows_the_status_of_a_tenant_in_gpus(defined: ControlPlane) -> None:
    kubectl = defined.kubectl
    kubectl("create", "--filename=-", stdin=tenant())
    created = defined.get("tenant", "probe")["metadata"]["creationTimestamp"]
    gpus = {"guarantee": "32", "ceiling": "48", "used": "27.75", "borrowed": "0"}
    status = {**gpus, "pending": 9, "oldestWait": created}
    patch = json.dumps({"status": status})
    kubectl("patch", "tnt", "probe", "--subresource=status", "--type=merge", f"--patch={patch}")

    def shown() -> list[str]:
        return kubectl("get", "tenants").stdout.splitlines()

    header, row = (line.split() for line in shown())
    assert header == [*HEADER, "OLDEST", "WAIT"]
    assert row[:6] == ["probe", "32", "48", "27.75", "0", "9"]
    assert row[6].endswith("s")
    without = json.dumps({"status": {"oldestWait": None}})
    kubectl("patch", "tnt", "probe", "--subresource=status", "--type=merge", f"--patch={without}")
    until(lambda: shown()[1].split() == row[:6], "no time where nothing waits")
    assert "probe" in kubectl("get", "sluice").stdout
