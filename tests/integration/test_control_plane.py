# SPDX-License-Identifier: Apache-2.0
"""The control plane itself: it is real, tells of dead components, and leaves nothing running."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane import ComponentError, ControlPlane, ControlPlaneError, Options, nodes

if TYPE_CHECKING:
    from tests.controlplane.supervisor import Supervisor
    from tests.integration.conftest import MakeNamespace

_DEADLINE_SECONDS = 20.0

_GPU_TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
]

# Prints what belongs to a control plane and then waits to be killed.
_OWNER = """
import json, os, sys, threading
from tests.controlplane import ControlPlane, find_binaries
control_plane = ControlPlane(find_binaries(os.environ, print))
# From a thread that ends: what it started must not end with it.
starter = threading.Thread(target=control_plane.start)
starter.start()
starter.join()
control_plane.kubectl("get", "namespaces")
pids = control_plane.components.pids.values()
print(json.dumps([str(control_plane.directory), *pids]), flush=True)
sys.stdin.read()
"""


def _pod(name: str, **spec: object) -> dict[str, object]:
    container = {"name": "main", "image": "registry.test/image", **_resources(spec)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def _resources(spec: dict[str, object]) -> dict[str, object]:
    limits = spec.pop("limits", None)
    return {"resources": {"limits": limits}} if limits else {}


def _wait(control_plane: ControlPlane, namespace: str, what: str, condition: str) -> None:
    timeout = f"--timeout={_DEADLINE_SECONDS:g}s"
    control_plane.kubectl("wait", what, f"--for={condition}", "-n", namespace, timeout)


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {_DEADLINE_SECONDS} s: {what}"
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    """Whether the process runs; a zombie, whose parent has yet to take notice, does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def _is_dead(components: "Supervisor") -> bool:
    """Never true: raises when a component has died."""
    components.check()
    return False


def test_a_plain_pod_is_bound_and_runs(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=_pod("plain"))

    _wait(control_plane, namespace, "pod/plain", "condition=Ready")

    pod = control_plane.get("pod", "plain", "-n", namespace)
    assert pod["status"]["phase"] == "Running"
    # Every other node has a taint.
    assert pod["spec"]["nodeName"] == "cpu"


@pytest.mark.parametrize(
    ("resource", "count", "expected"),
    [
        ("nvidia.com/gpu", 8, {"h100-whole", "a100-whole"}),
        ("nvidia.com/gpu.shared", 1, {"h100-shared", "l40s-shared"}),
        ("nvidia.com/mig-1g.10gb", 1, {"h100-mig"}),
        ("nvidia.com/mig-2g.20gb", 1, {"h100-mig"}),
        ("nvidia.com/mig-3g.40gb", 1, {"h100-mig"}),
        ("amd.com/gpu", 1, {"mi300x-whole"}),
    ],
)
def test_the_scheduler_places_a_gpu_pod_on_a_node_that_gives_its_resource(
    control_plane: ControlPlane, namespace: str, resource: str, count: int, expected: set[str]
) -> None:
    pod = _pod("gpu", limits={resource: str(count)}, tolerations=_GPU_TOLERATIONS)
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=pod)

    _wait(control_plane, namespace, "pod/gpu", "condition=Ready")

    placed = control_plane.get("pod", "gpu", "-n", namespace)
    assert placed["spec"]["nodeName"] in expected


def test_more_gpus_than_a_node_has_leave_the_pod_pending(
    control_plane: ControlPlane, namespace: str
) -> None:
    pod = _pod("huge", limits={"nvidia.com/gpu": "9"}, tolerations=_GPU_TOLERATIONS)
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=pod)

    _wait(control_plane, namespace, "pod/huge", "condition=PodScheduled=False")

    conditions = control_plane.get("pod", "huge", "-n", namespace)["status"]["conditions"]
    assert "Insufficient nvidia.com/gpu" in conditions[0]["message"]


def test_init_containers_have_ended_and_sidecars_run(
    control_plane: ControlPlane, namespace: str
) -> None:
    init = {"name": "init", "image": "registry.test/image"}
    sidecar = {"name": "sidecar", "image": "registry.test/image", "restartPolicy": "Always"}
    pod = _pod("layered", initContainers=[init, sidecar])
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=pod)

    _wait(control_plane, namespace, "pod/layered", "condition=Ready")

    status = control_plane.get("pod", "layered", "-n", namespace)["status"]
    states = {s["name"]: next(iter(s["state"])) for s in status["initContainerStatuses"]}
    assert states == {"init": "terminated", "sidecar": "running"}
    assert status["containerStatuses"][0]["ready"]


def test_the_controllers_run_a_job_to_its_end(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "job", "short", "--image=registry.test/image", "-n", namespace)

    _wait(control_plane, namespace, "job/short", "condition=Complete")


def test_a_job_whose_pods_ask_for_time_goes_on_until_it_is_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    template: dict[str, Any] = _pod("unused", restartPolicy="Never")
    template["metadata"] = {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "long"},
        "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}},
    }
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=job)

    _wait(control_plane, namespace, "job/long", "jsonpath={.status.ready}=1")

    pods = control_plane.get("pods", "-n", namespace)["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"]
    control_plane.kubectl("delete", "job/long", "-n", namespace, "--cascade=foreground")
    assert control_plane.get("pods", "-n", namespace)["items"] == []


def test_a_deleted_pod_may_take_its_time_to_end(
    control_plane: ControlPlane, namespace: str
) -> None:
    pod: dict[str, Any] = _pod("slow")
    pod["metadata"]["annotations"] = {"pod-delete.stage.kwok.x-k8s.io/delay": "1h"}
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=pod)
    _wait(control_plane, namespace, "pod/slow", "condition=Ready")

    control_plane.kubectl("delete", "pod/slow", "-n", namespace, "--wait=false")

    terminating = control_plane.get("pod", "slow", "-n", namespace)
    assert terminating["metadata"]["deletionTimestamp"]
    control_plane.kubectl("delete", "pod/slow", "-n", namespace, "--grace-period=0", "--force")


def test_a_namespace_carries_the_labels_that_were_asked_for(
    control_plane: ControlPlane, make_namespace: "MakeNamespace"
) -> None:
    name = make_namespace({"team": "chat"})

    assert control_plane.get("namespace", name)["metadata"]["labels"]["team"] == "chat"


def test_an_added_user_may_do_only_what_is_granted(
    control_plane: ControlPlane, namespace: str
) -> None:
    user = f"{namespace}-user"
    control_plane.add_user(user, ("tenants",))

    refused = control_plane.kubectl("get", "pods", "-n", namespace, user=user, check=False)
    control_plane.kubectl(
        "create", "rolebinding", "edit", "--clusterrole=edit", "--group=tenants", "-n", namespace
    )
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=_pod("mine"), user=user)

    assert "Forbidden" in refused.stderr
    elsewhere = control_plane.kubectl("get", "pods", "-n", "default", user=user, check=False)
    assert "Forbidden" in elsewhere.stderr


def test_an_unknown_user_is_an_error(control_plane: ControlPlane) -> None:
    with pytest.raises(ControlPlaneError, match="no user 'nobody'"):
        control_plane.kubectl("get", "pods", user="nobody")


def test_a_component_that_dies_at_its_start_is_reported_with_its_log(
    binaries: Mapping[str, Path],
) -> None:
    control_plane = ControlPlane(binaries, Options(apiserver_arguments=("--no-such-flag",)))

    with pytest.raises(ComponentError) as caught:
        control_plane.start()

    assert "kube-apiserver has died (exit code 1)" in str(caught.value)
    assert "unknown flag: --no-such-flag" in str(caught.value)


def test_a_component_that_is_not_healthy_in_time_is_reported_with_its_log(
    binaries: Mapping[str, Path],
) -> None:
    control_plane = ControlPlane(binaries, Options(start_seconds=0.0))

    with pytest.raises(ComponentError, match=r"(?s)etcd was not healthy within 0 s.*etcd\.log:"):
        control_plane.start()


def test_components_can_die_come_back_and_leave_nothing_behind(
    binaries: Mapping[str, Path],
) -> None:
    options = Options(scheduler_config={"profiles": [{"schedulerName": "renamed"}]})
    with ControlPlane(binaries, options) as own:
        components, directory, pids = own.components, own.directory, dict(own.components.pids)

        own.create_nodes([nodes.cpu("only")])
        own.create_namespace("kept")
        pod = _pod("renamed", schedulerName="renamed")
        own.kubectl("create", "-n", "kept", "-f", "-", stdin=pod)
        _wait(own, "kept", "pod/renamed", "condition=Ready")

        os.kill(pids["kube-scheduler"], signal.SIGKILL)
        with pytest.raises(ComponentError, match=r"kube-scheduler has died \(SIGKILL\)"):
            _until(lambda: _is_dead(components), "the report of the scheduler's end")
        components.kill_component("kube-scheduler")

        components.stop_component("kwok")
        with pytest.raises(ControlPlaneError, match="kwok is not running"):
            components.stop_component("kwok")
        components.start_component("kwok")
        with pytest.raises(ControlPlaneError, match="kwok is running already"):
            components.start_component("kwok")

        components.kill_component("etcd")
        components.kill_component("kube-apiserver")
        assert set(components.pids) == {"kube-controller-manager", "kwok"}
        components.start_component("etcd")
        components.start_component("kube-apiserver")
        own.kubectl("get", "pod/renamed", "-n", "kept")
        with pytest.raises(ControlPlaneError, match="no component 'kubelet'"):
            components.start_component("kubelet")
        pids |= components.pids

    assert not any(_is_running(pid) for pid in pids.values())
    assert not directory.exists()
    with pytest.raises(ControlPlaneError, match="not running"):
        own.kubectl("get", "pods")


async def test_it_is_an_async_context_manager_with_a_kubectl_that_does_not_block(
    binaries: Mapping[str, Path],
) -> None:
    async with ControlPlane(binaries) as own:
        pids = own.components.pids
        answer = await own.kubectl_async("get", "--raw", "/version")
        assert json.loads(answer.stdout)["gitVersion"] == "v1.37.2"

    assert not any(_is_running(pid) for pid in pids.values())


def test_nothing_survives_the_death_of_the_process_that_started_it(
    binaries: Mapping[str, Path],
) -> None:
    assert binaries
    command = [sys.executable, "-c", _OWNER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=_environment()) as owner:
        assert owner.stdout is not None
        line = owner.stdout.readline()
        owner.kill()
    directory, *pids = json.loads(line)

    assert len(pids) == 5
    _until(lambda: not any(_is_running(pid) for pid in pids), "the components' end")
    _until(lambda: not Path(directory).exists(), "the temporary directory's end")


def test_the_command_runs_until_it_is_interrupted(
    binaries: Mapping[str, Path], tmp_path: Path
) -> None:
    directory = tmp_path / "state"
    command = [sys.executable, "-m", "tests.controlplane", "start", f"--directory={directory}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment()) as running:
        assert running.stdout is not None
        line = running.stdout.readline().decode()
        kubeconfig = line.strip().removeprefix("export KUBECONFIG=")
        ready = subprocess.run(
            [binaries["kubectl"], f"--kubeconfig={kubeconfig}", "get", "nodes", "--no-headers"],
            capture_output=True,
            text=True,
            check=True,
        )
        second = ControlPlane(binaries, directory=directory)
        with pytest.raises(ControlPlaneError, match="another control plane runs in"):
            second.start()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=_DEADLINE_SECONDS) == 0

    assert len(ready.stdout.splitlines()) == 7
    assert (directory / "kube-apiserver.log").exists()


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": str(root)}
