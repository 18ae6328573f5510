# SPDX-License-Identifier: Apache-2.0
"""Builds one program with `go build` from its pinned module.

Where modules come from (GOPROXY and the like) is the user's own Go configuration and is left alone.
What is built, and where it is looked for and kept, is decided in `programs` and `binaries`.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane.errors import BuildError
from tests.controlplane.programs import CONTROL_PLANE, KUBERNETES, Kit, Module, Program

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN_LINES = 30
_GO_VERSION = re.compile(r"go(\d+)\.(\d+)")


def check_go(environ: "Mapping[str, str]", kit: Kit = CONTROL_PLANE) -> str:
    """Return the path of a Go that is new enough, or raise a BuildError that names the version."""
    needed = max(module.go_version for module in kit.modules)
    wanted = f"the {kit.title} is built with Go {needed[0]}.{needed[1]} or newer"
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        raise BuildError(
            f"{wanted}, and there is no `go` on PATH: install it, "
            "or set KUBEBUILDER_ASSETS to a folder with the binaries"
        )
    # Run in the module's folder, so that Go's own toolchain switching has its say.
    answer = _run([go, "env", "GOVERSION"], kit.modules[0].directory, environ)
    found = _GO_VERSION.search(answer.stdout)
    if answer.returncode != 0 or found is None:
        raise BuildError(f"{wanted}, and `go env GOVERSION` failed:\n{_tail(answer.stdout)}")
    if (int(found[1]), int(found[2])) < needed:
        raise BuildError(f"{wanted}; {go} is {found[0]}")
    return go


def build(go: str, program: Program, destination: "Path", environ: "Mapping[str, str]") -> None:
    """Build `program` and put it at `destination` in one step; a broken build leaves nothing."""
    with tempfile.TemporaryDirectory(prefix=f".{program.name}-", dir=destination.parent) as scratch:
        built = Path(scratch) / program.name
        command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        if program.module.tags:
            command += ["-tags", ",".join(program.module.tags)]
        command += ["-ldflags", _ldflags(program.module), "-o", str(built), program.package]
        answer = _run(command, program.module.directory, environ)
        if answer.returncode != 0:
            raise BuildError(
                f"building {program.name} failed; the end of its output:\n{_tail(answer.stdout)}"
            )
        built.replace(destination)


def _ldflags(module: Module) -> str:
    """Drop symbols; stamp Kubernetes, whose API server calls itself v0.0.0-master unstamped."""
    flags = ["-s", "-w"]
    if module is KUBERNETES:
        major, minor = module.version.removeprefix("v").split(".")[:2]
        stamp = "-X k8s.io/component-base/version."
        flags += [
            f"{stamp}gitVersion={module.version}",
            f"{stamp}gitMajor={major}",
            f"{stamp}gitMinor={minor}",
        ]
    return " ".join(flags)


def _run(
    command: list[str], directory: "Path", environ: "Mapping[str, str]"
) -> subprocess.CompletedProcess[str]:
    # A workspace file somewhere above the checkout would take the place of the pinned go.mod.
    env = {**environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    return subprocess.run(
        command,
        cwd=directory,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def _tail(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-_SHOWN_LINES:])
