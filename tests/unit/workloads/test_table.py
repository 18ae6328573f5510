# SPDX-License-Identifier: Apache-2.0
"""The shipped kinds are written as `Settings` takes them, and can be looked up."""

import orjson
import pytest

from policies.documents.document import Document
from policies.documents.kinds import Kind
from policies.documents.schemas import build_validators, violations
from policies.documents.settings import compile_settings
from policies.documents.source import SourceText, parse_documents
from policies.documents.validate import check
from policies.model.workload import WorkloadKind
from policies.workloads.reading import read_kind, read_table
from tests.support.builders import catalog
from tests.support.workloads import kinds

CUSTOM = {
    "kubeflow.org": {
        *("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "Notebook")
    },
    "ray.io": {"RayCluster", "RayJob", "RayService"},
    "leaderworkerset.x-k8s.io": {"LeaderWorkerSet"},
    "jobset.x-k8s.io": {"JobSet"},
    "serving.kserve.io": {"InferenceService"},
    "argoproj.io": {"Workflow", "CronWorkflow", "WorkflowTemplate"},
}


def _settings() -> Document:
    """Return the shipped table as a document of a user's."""
    text = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Settings",
        "metadata": {"name": "cluster"},
        "spec": {"workloads": [k for k in read_table()["kinds"] if "." in k["group"]]},
    }
    (document,) = parse_documents(SourceText("settings.yaml", orjson.dumps(text))).documents
    return document


def test_the_table_is_what_settings_may_say() -> None:
    validators = build_validators()
    document = _settings()

    assert list(violations(validators[Kind.SETTINGS], document.value)) == []
    subject, _ = check(document, Kind.SETTINGS, validators[Kind.SETTINGS])
    compiled = compile_settings(subject)
    assert {problem.message for problem in compiled.problems} == {
        "replaces the shipped kind of its name"
    }
    assert compiled.value.workloads == tuple(k for k in kinds() if not k.is_built_in)


def test_the_kinds_that_people_run_gpus_with_are_there() -> None:
    found: dict[str, set[str]] = {}
    for kind in kinds():
        if not kind.is_built_in:
            found.setdefault(kind.group, set()).add(kind.kind)

    assert found == CUSTOM


def test_no_two_kinds_share_a_name_or_a_resource() -> None:
    assert len({(kind.group, kind.kind) for kind in kinds()}) == len(kinds())
    assert len({(kind.group, kind.resource) for kind in kinds()}) == len(kinds())


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
def test_a_kind_is_found_by_its_resource_and_by_its_manifest(kind: WorkloadKind) -> None:
    workloads = catalog().workloads

    assert workloads.of_resource(kind.group, kind.resource) is kind
    for version in kind.versions:
        assert workloads.of_manifest(f"{kind.group}/{version}", kind.kind) is kind


def test_what_holds_no_pods_is_no_workload() -> None:
    workloads = catalog().workloads

    assert workloads.of_resource("", "pods") is None
    assert workloads.of_resource("apps", "jobs") is None
    assert workloads.of_manifest("v1", "Service") is None
    assert workloads.of_manifest("trainer.kubeflow.org/v1alpha1", "TrainJob") is None


def test_further_kinds_stand_beside_the_shipped_and_replace_those_of_their_names() -> None:
    templates = [{"path": "spec.template"}]
    volcano = {"group": "batch.volcano.sh", "resource": "jobs", "kind": "Job"}
    renamed = {"group": "ray.io", "resource": "rayclusters", "kind": "Cluster"}
    own = [read_kind({**raw, "templates": templates}) for raw in (volcano, renamed)]

    joined = catalog().workloads.joined(own)

    assert joined.of_resource("batch.volcano.sh", "jobs") is own[0]
    assert joined.of_resource("ray.io", "rayclusters") is own[1]
    assert joined.of_manifest("ray.io/v1", "RayCluster") is None
    assert len(joined.kinds) == len(kinds()) + 1
    assert catalog().workloads.joined([]) is catalog().workloads


def test_a_kind_without_versions_is_meant_in_all_of_them() -> None:
    raw = {"group": "a.b", "resource": "cs", "kind": "C", "templates": [{"path": "spec.template"}]}

    assert read_kind(raw).versions == ("*",)
