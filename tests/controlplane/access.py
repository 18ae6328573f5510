# SPDX-License-Identifier: Apache-2.0
"""How people and programs reach the control plane: kubeconfig files and kubectl.

Who the users are is decided in `cluster`.
"""

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.controlplane.errors import KubectlError
from tests.controlplane.pki import KeyPair

KubectlInput = str | Mapping[str, object]

_KUBECTL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """Where the API server is, and the CA (PEM) that its certificate is checked with."""

    url: str
    ca_bundle: bytes


def write_kubeconfig(path: Path, server: Server, user: str, credentials: str | KeyPair) -> None:
    """Write a kubeconfig, readable by its owner alone, for `user` with a token or certificate."""
    name = "control-plane"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": server.url,
                    "certificate-authority-data": _base64(server.ca_bundle),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "users": [{"name": user, "user": _credentials(credentials)}],
    }
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Runs kubectl without reading or writing anything of the user's own configuration."""

    binary: Path
    home: Path

    def run(
        self,
        kubeconfig: Path,
        arguments: tuple[str, ...],
        stdin: KubectlInput | None = None,
        *,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl to its end; a mapping given as `stdin` is written as JSON.

        Raises KubectlError with what kubectl wrote if it fails (unless `check` is false), or hangs.
        """
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        try:
            answer = subprocess.run(
                [str(self.binary), *arguments],
                input=text if text is not None else "",
                capture_output=True,
                text=True,
                env=self._environment(kubeconfig),
                timeout=_KUBECTL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlError(
                f"kubectl {' '.join(arguments)} did not end in {_KUBECTL_SECONDS:g} s"
            ) from error
        if check and answer.returncode != 0:
            raise KubectlError(
                f"kubectl {' '.join(arguments)} ended with {answer.returncode}:\n"
                f"{answer.stdout}{answer.stderr}"
            )
        return answer

    def _environment(self, kubeconfig: Path) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.home),
            "KUBECONFIG": str(kubeconfig),
            "KUBERC": "off",
        }


def _credentials(credentials: str | KeyPair) -> dict[str, str]:
    if isinstance(credentials, str):
        return {"token": credentials}
    return {
        "client-certificate-data": _base64(credentials.certificate),
        "client-key-data": _base64(credentials.key),
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
