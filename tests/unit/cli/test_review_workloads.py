# SPDX-License-Identifier: Apache-2.0
"""`sluice review` of objects whose controllers make pods: each template, and all in sum."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from policies.model.workload import WorkloadKind
from sluice import main
from tests.support.builders import Json, container, pod
from tests.support.golden import SETS
from tests.support.workloads import NAME, kind_of, kinds, workload

POLICIES = SETS / "cluster" / "policies.yaml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "manifest.yaml"


def review(file: Path, *manifests: Json, output: str = "text", policies: Path = POLICIES) -> Result:
    file.write_text(yaml.safe_dump_all(manifests))
    arguments = ["review", "-f", str(file), "--policies", str(policies), "-o", output]
    return CliRunner().invoke(main, arguments)


def job(replicas: object, gpus: int = 1) -> Json:
    spec = pod(container("pytorch", gpus=gpus))["spec"]
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "c18", "namespace": "chat"},
        "spec": {
            "pytorchReplicaSpecs": {"Worker": {"replicas": replicas, "template": {"spec": spec}}}
        },
    }


def ray(replicas: int) -> Json:
    head, worker = (pod(container(n, gpus=g))["spec"] for n, g in (("head", None), ("worker", 1)))
    group = {"groupName": "gpu", "replicas": replicas, "template": {"spec": worker}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c18", "namespace": "chat"},
        "spec": {"headGroupSpec": {"template": {"spec": head}}, "workerGroupSpecs": [group]},
    }


def headings(result: Result) -> list[str]:
    return [line for line in result.output.splitlines() if " in chat: " in line]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
def test_every_kind_is_understood(file: Path, kind: WorkloadKind) -> None:
    result = review(file, workload(kind, pod(container(gpus=1))))

    assert result.exit_code == 0, result.output
    assert len(headings(result)) == len(kind.templates)
    for line in headings(result):
        assert line.startswith(f"{kind.kind.lower()}/llm")
        assert line.endswith(": allowed by policy no-raw-gpu")


def test_templates_and_how_often_they_are_used_are_named(file: Path) -> None:
    result = review(file, job(2, gpus=4), ray(1), workload(kind_of("Deployment"), pod()))

    assert headings(result) == [
        "pytorchjob/c18 (Worker x 2) in chat: refused",
        "raycluster/c18 (head) in chat: allowed",
        "raycluster/c18 (gpu) in chat: allowed by policy no-raw-gpu",
        "deployment/llm in chat: allowed by policy no-raw-gpu",
    ]


def test_all_pods_are_summed_up_at_the_end(file: Path) -> None:
    result = review(file, job(2, gpus=4), ray(1))

    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == (
        "9 GPUs in all by 3 pods; 0.25 GPUs charged; 2 pods refused"
    )


def test_shares_of_all_pods_are_rounded_up_together(file: Path, tmp_path: Path) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICIES.read_text().replace("replicas: 4", "replicas: 3"))
    result = review(file, job(2), ray(1), policies=policies)

    assert result.output.splitlines()[-1] == "3 GPUs in all by 3 pods; 1 GPU charged"


def test_one_pod_is_not_summed_up(file: Path) -> None:
    assert " in all " not in review(file, pod(container(gpus=1))).output
    assert " in all " not in review(file, job(1)).output
    assert " in all " not in review(file, pod(), *[pod(container())] * 3).output


def test_pods_whose_number_is_not_said_are_named_and_not_counted(file: Path) -> None:
    found = [workload(kind_of(name), pod(container(gpus=1))) for name in ("DaemonSet", "Workflow")]
    result = review(file, *found, job("many"), job(2))

    labels = f"daemonset/llm, workflow/llm ({NAME}), pytorchjob/c18 (Worker)"
    assert result.output.splitlines()[-2:] == [
        "2 GPUs in all by 2 pods; 0.5 GPUs charged",
        f"not counted, since the number is not said: {labels}",
    ]


def test_numbers_for_programs_are_per_pod_with_their_replicas(file: Path) -> None:
    result = review(file, job(2), workload(kind_of("DaemonSet"), pod()), output="json")
    found: list[Any] = json.loads(result.stdout)

    assert [(item["object"], item["replicas"], item["chargeMilliGpu"]) for item in found] == [
        ("pytorchjob/c18 (Worker x 2)", 2, 250),
        ("daemonset/llm", None, 250),
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("nvidia.com/gpus", "nvidia/gpu", "nvidia.com.gpu", "NVIDIA.com/gpu"),
        *("requests.nvidia.com/gpu", "nvidia.com/GPU", "Nvidia.com/Gpu", "nvidia.com/gpu-shared"),
    ],
)
@pytest.mark.parametrize("kind", ["Pod", "PyTorchJob", "Deployment"])
def test_a_misspelt_name_gets_the_right_one_suggested(file: Path, name: str, kind: str) -> None:
    asking = pod(container(gpus=1, resource=name))
    result = review(file, asking if kind == "Pod" else workload(kind_of(kind), asking))

    assert result.exit_code == 1
    right = "nvidia.com/gpu.shared" if name.endswith("-shared") else "nvidia.com/gpu"
    assert f"{name} is given by no profile: did you mean {right}?" in result.output


def test_a_kind_of_the_settings_is_understood(file: Path, tmp_path: Path) -> None:
    policies = tmp_path / "policies.yaml"
    kind = {"group": "example.com", "resource": "models", "kind": "Model"}
    kind |= {"templates": [{"path": "spec.pods.*", "replicas": ["spec.replicas"]}]}  # type: ignore[dict-item]  # JSON
    settings = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Settings",
        "metadata": {"name": "cluster"},
        "spec": {"workloads": [kind]},
    }
    policies.write_text(f"{yaml.safe_dump(settings)}---\n{POLICIES.read_text()}")
    model = {
        "apiVersion": "example.com/v1",
        "kind": "Model",
        "metadata": {"name": "llm", "namespace": "chat"},
        "spec": {"replicas": 3, "pods": {"decode": {"spec": pod()["spec"]}}},
    }

    known, unknown = review(file, model, policies=policies), review(file, model)

    assert headings(known) == ["model/llm (decode x 3) in chat: allowed by policy no-raw-gpu"]
    assert "model/llm: holds no pods that Sluice knows of" in unknown.output


def test_a_template_that_is_none_is_bad_input(file: Path) -> None:
    found = job(1)
    found["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = "later"
    result = review(file, found)

    assert result.exit_code == 2
    assert "template is not an object" in result.output


def queue(*covered: str, api_version: str = "kueue.x-k8s.io/v1beta1") -> Json:
    groups = [{"coveredResources": ["cpu"]}, {"coveredResources": list(covered)}]
    metadata = {"name": "main"}
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    return {"apiVersion": api_version, "kind": "ClusterQueue", "metadata": metadata, "spec": spec}


def test_a_queue_that_counts_whole_gpus_of_rewritten_tenants_is_reported(file: Path) -> None:
    result = review(file, queue("nvidia.com/gpu", "memory"))

    assert result.exit_code == 0
    assert (
        "  covers nvidia.com/gpu, of which tenants may get shares (chat, research, vision): "
        in (result.output)
    )


@pytest.mark.parametrize(
    "other",
    [
        queue("nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"),
        queue("amd.com/gpu"),  # given whole
        queue("nvidia.com/gpu", api_version="example.com/v1"),
        {**queue(), "spec": {"resourceGroups": None}},
    ],
)
def test_a_queue_that_counts_what_pods_get_is_not_spoken_of(file: Path, other: Json) -> None:
    result = review(file, other)

    assert result.output == "clusterqueue/main: holds no pods that Sluice knows of\n"


def test_a_queue_that_is_malformed_is_bad_input(file: Path) -> None:
    result = review(file, {**queue(), "spec": {"resourceGroups": "later"}})

    assert result.exit_code == 2
    assert "resourceGroups is not a list of objects" in result.output
