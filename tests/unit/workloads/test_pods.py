# SPDX-License-Identifier: Apache-2.0
"""From an object to its pods: which templates, how many of each, and what the pods look like."""

from typing import Any

import pytest

from policies.model.workload import WorkloadKind
from policies.pod.reading import MalformedError
from policies.workloads.pods import MAX_REPLICAS, PodSet, pod_sets
from policies.workloads.reading import read_kind
from policies.workloads.source import name_of
from tests.support.builders import Json, catalog, container, pod
from tests.support.workloads import NAME, kind_of, kinds, workload

POD = pod(container(gpus=1), labels={"app": "llm"})


def sets(kind: WorkloadKind, found: Json) -> list[PodSet]:
    return list(pod_sets(catalog().workloads, kind, found))


def counts(kind: WorkloadKind, spec: Json) -> list[int | None]:
    return [pods.count for pods in sets(kind, {"metadata": {"name": "a"}, "spec": spec})]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
def test_every_template_of_a_kind_is_found_and_made_a_pod(kind: WorkloadKind) -> None:
    found = sets(kind, workload(kind, POD))

    assert len(found) == len(kind.templates)
    for pods, template in zip(found, kind.templates, strict=True):
        made: Any = pods.pod("chat")
        assert made["metadata"]["labels"] == {"app": "llm"}
        assert made["metadata"]["namespace"] == "chat"
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == (template.owner, "llm", True)
        (main,) = made["spec"]["containers"]
        assert main["resources"]["limits"] == {"nvidia.com/gpu": "1"}
        assert pods.user.username == template.account


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
def test_the_templates_of_one_object_can_be_told_apart(kind: WorkloadKind) -> None:
    names = [pods.name for pods in sets(kind, workload(kind, POD))]

    assert len(set(names)) == len(names)
    assert all(names) or len(names) == 1


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
def test_an_object_without_templates_has_no_pods(kind: WorkloadKind) -> None:
    nothing: list[Json] = [{}, {"spec": None}, {"spec": {}}, {"spec": "later"}]
    for empty in nothing:
        assert sets(kind, {"metadata": {"name": "a"}, **empty}) == []


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("Deployment", {"replicas": 12, "template": {}}, [12]),
        ("Deployment", {"template": {}}, [1]),
        ("Deployment", {"replicas": 0, "template": {}}, [0]),
        ("DaemonSet", {"template": {}}, [None]),
        ("Job", {"parallelism": 3, "completions": 9, "template": {}}, [3]),
        ("CronJob", {"jobTemplate": {"spec": {"parallelism": 2, "template": {}}}}, [2]),
        ("TFJob", {"tfReplicaSpecs": {"PS": {"replicas": 2, "template": {}}}}, [2]),
        (
            "RayCluster",
            {
                "headGroupSpec": {"template": {}},
                "workerGroupSpecs": [{"replicas": 3, "numOfHosts": 4, "template": {}}],
            },
            [1, 12],
        ),
        (
            "LeaderWorkerSet",
            {"replicas": 3, "leaderWorkerTemplate": {"size": 4, "workerTemplate": {}}},
            [3, 9],
        ),
        ("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {}}}, [1, 0]),
        (
            "JobSet",
            {
                "replicatedJobs": [
                    {"replicas": 2, "template": {"spec": {"parallelism": 5, "template": {}}}}
                ]
            },
            [10],
        ),
        ("Workflow", {"templates": [{"container": {"image": "a"}}]}, [None]),
    ],
)
def test_pods_are_counted_as_their_kind_counts_them(
    kind: str, spec: Json, expected: list[int | None]
) -> None:
    assert counts(kind_of(kind), spec) == expected


@pytest.mark.parametrize("replicas", ["3", 2.5, True, -1, MAX_REPLICAS + 1, [], {}])
def test_a_number_of_pods_that_is_none_is_not_known(replicas: object) -> None:
    assert counts(kind_of("Deployment"), {"replicas": replicas, "template": {}}) == [None]


def test_a_product_that_no_cluster_runs_is_not_known() -> None:
    group = {"replicas": MAX_REPLICAS, "numOfHosts": MAX_REPLICAS, "template": {}}

    assert counts(kind_of("RayCluster"), {"workerGroupSpecs": [group]}) == [None]


def test_templates_are_called_by_key_by_name_or_by_place() -> None:
    groups = [{"groupName": "small", "template": {}}, {"template": {}}, {"name": 3, "template": {}}]
    found = sets(kind_of("RayCluster"), {"spec": {"workerGroupSpecs": groups}})

    assert [pods.name for pods in found] == ["small", "1", "2"]
    (worker,) = sets(kind_of("PyTorchJob"), workload(kind_of("PyTorchJob"), POD))
    assert worker.name == NAME


def test_what_an_object_hands_on_counts_where_the_template_has_nothing_of_it() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "1", "b": "1"}
    kind = kind_of("InferenceService")
    found: Json = {
        "metadata": {"name": "llm", "labels": {"team": "x"}, "annotations": annotations},
        "spec": {"predictor": {"annotations": {"b": "2"}, "model": {"image": "a"}}},
    }
    (predictor,) = sets(kind, found)
    metadata: Any = predictor.pod("chat")["metadata"]

    assert metadata["labels"] == {"team": "x"}
    assert metadata["annotations"] == {"a": "1", "b": "2"}


def test_a_step_of_a_workflow_has_its_own_scheduling_or_else_the_workflows() -> None:
    spec: Json = {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
        "entrypoint": "main",
        "templates": [
            {"name": "one", "container": {"image": "a"}, "nodeSelector": {"zone": "b"}},
            {"name": "two", "script": {"image": "a", "source": "pass"}, "inputs": {}},
            {"name": "three", "dag": {"tasks": []}},
        ],
    }
    one, two = (
        p.pod("chat") for p in sets(kind_of("Workflow"), {"metadata": {"name": "w"}, "spec": spec})
    )

    assert one["spec"] == {
        "nodeSelector": {"zone": "b"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"image": "a", "name": "main"}],
    }
    assert two["spec"] == {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"image": "a", "name": "main"}],
    }


def test_a_leader_has_its_own_template_or_else_the_workers() -> None:
    kind = kind_of("LeaderWorkerSet")
    worker = {"spec": {"containers": [container("worker", gpus=1)]}}
    leader = {"spec": {"containers": [container("leader")]}}

    def names(template: Json) -> list[Any]:
        found = sets(kind, {"metadata": {"name": "a"}, "spec": {"leaderWorkerTemplate": template}})
        made: list[Any] = [pods.pod("chat") for pods in found]
        return [item["spec"]["containers"][0]["name"] for item in made]

    assert names({"workerTemplate": worker}) == ["worker", "worker"]
    assert names({"workerTemplate": worker, "leaderTemplate": leader}) == ["leader", "worker"]


@pytest.mark.parametrize(
    "template",
    ["later", ["later"], {"spec": "later"}, {"spec": {"containers": "later"}}, {"metadata": 3}],
)
def test_a_template_of_other_types_says_so_when_it_is_read(template: object) -> None:
    (pods,) = sets(kind_of("Job"), {"metadata": {"name": "a"}, "spec": {"template": template}})

    with pytest.raises(MalformedError):
        pods.pod("chat")


def test_amounts_become_text_and_limits_requests_as_in_any_pod() -> None:
    found = workload(kind_of("PyTorchJob"), pod({"name": "main", "resources": _limits(4, None)}))
    (pods,) = sets(kind_of("PyTorchJob"), found)
    made: Any = pods.pod("chat")
    amounts = {"nvidia.com/gpu": "4", "cpu": "0"}

    assert made["spec"]["containers"][0]["resources"] == {"limits": amounts, "requests": amounts}


def _limits(gpus: object, cpu: object) -> Json:
    return {"limits": {"nvidia.com/gpu": gpus, "cpu": cpu}}


def test_the_account_of_a_controller_has_the_groups_that_the_api_server_gives_it() -> None:
    (pods,) = sets(kind_of("Job"), workload(kind_of("Job"), POD))

    assert pods.user.username == "system:serviceaccount:kube-system:job-controller"
    assert pods.user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
        "system:authenticated",
    )


def test_a_controller_that_nothing_is_known_of_is_some_service_account() -> None:
    raw = {"group": "a.b", "resource": "cs", "kind": "C", "templates": [{"path": "spec.template"}]}
    kind = read_kind(raw)
    (pods,) = sets(kind, {"metadata": {"name": "a"}, "spec": {"template": {}}})

    assert pods.user.username == ""
    assert pods.user.groups == ("system:serviceaccounts", "system:authenticated")
    assert pods.template.owner == "C"


def test_an_object_is_called_by_its_name_or_by_its_beginning() -> None:
    assert name_of({"metadata": {"name": "a", "generateName": "b-"}}) == "a"
    assert name_of({"metadata": {"generateName": "b-"}}) == "b-*"
    assert name_of({}) == ""
