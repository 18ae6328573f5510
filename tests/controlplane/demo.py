# SPDX-License-Identifier: Apache-2.0
"""`make cluster`: a real control plane with Sluice and simulated nodes, to try by hand."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from tests.controlplane import ControlPlane, ControlPlaneError, find_binaries, nodes
from tests.controlplane.installed import ROOT, InstalledSluice

_CHECK_SECONDS = 1.0
_NAMESPACES: tuple[tuple[str, dict[str, str]], ...] = (
    ("chat", {}),
    ("finance", {}),
    ("research-nlp", {"team": "research"}),
)


def main() -> int:
    """Run until Ctrl-C; return the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(soft_wrap=True, highlight=False)
    directory = ROOT / "run"
    try:
        _run(directory, console)
    except KeyboardInterrupt:
        console.print("\nstopped")
    except ControlPlaneError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    return 0


def _run(directory: Path, console: Console) -> None:
    policies = directory / "policies"
    shutil.rmtree(policies, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "examples" / "policies", policies)
    binaries = find_binaries(os.environ, console.print)
    console.print("starting etcd, kube-apiserver, controllers, scheduler and simulated nodes")
    with ControlPlane(binaries, directory=directory / "cluster") as control_plane:
        control_plane.create_nodes(nodes.fleet())
        for name, labels in _NAMESPACES:
            control_plane.create_namespace(name, labels)
        console.print("installing Sluice")
        with InstalledSluice(control_plane, policies, directory / "sluice") as sluice:
            _explain(control_plane, sluice, binaries["kubectl"], policies, console)
            _watch(control_plane, sluice)


def _explain(
    control_plane: ControlPlane,
    sluice: InstalledSluice,
    kubectl: Path,
    policies: Path,
    console: Console,
) -> None:
    console.print("\n[bold]In another terminal:[/bold]\n")
    console.print(f"  export KUBECONFIG={control_plane.kubeconfig} PATH={kubectl.parent}:$PATH")
    for line in (
        "kubectl get nodes -L nvidia.com/gpu.product,nvidia.com/gpu.sharing-strategy",
        "kubectl apply -f docs/examples/pods/llm.yaml     # one GPU becomes a MIG instance",
        "kubectl apply -f docs/examples/pods/stranger.yaml   # refused: no tenant",
        "kubectl apply --dry-run=server -f docs/examples/pods/train.yaml",
        "kubectl get pods -A -o wide",
    ):
        console.print(f"  {line}")
    console.print(f"\npolicies    {policies}  (edit them: what is served follows)")
    console.print(f"audit log   {sluice.audit}")
    console.print(f"logs        {sluice.log}, {control_plane.directory}/*.log")
    console.print("\nrunning until Ctrl-C")


def _watch(control_plane: ControlPlane, sluice: InstalledSluice) -> None:
    while True:
        control_plane.components.check()
        sluice.check()
        time.sleep(_CHECK_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
