# SPDX-License-Identifier: Apache-2.0
"""What service accounts have asked an API server for, from the server's own audit log.

Source: Kubernetes `audit.k8s.io/v1` Event and Policy.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.controlplane.components import Options

_FORBIDDEN: Final = 403

Permission = tuple[str, str, str]
"""Group, resource with its subresource, and verb."""


@dataclass(frozen=True, slots=True)
class ApiLog:
    """The log of an API server that was started with `options`."""

    directory: Path

    def options(self, *further: str) -> Options:
        """Return how the control plane is to be started; `further` are arguments of the server."""
        policy = self.directory / "audit-policy.yaml"
        rules = [{"level": "Metadata", "userGroups": ["system:serviceaccounts:sluice"]}]
        none = {"level": "None"}
        body = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [*rules, none]}
        policy.write_text(json.dumps(body), encoding="utf-8")
        return Options(
            apiserver_arguments=(
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self._log}",
                *further,
            )
        )

    def used(self, account: str) -> set[Permission]:
        """Return what an account of the namespace `sluice` was allowed to do and did."""
        return {_permission(call) for call in self._calls(account) if not _is_forbidden(call)}

    def forbidden(self, account: str) -> set[Permission]:
        """Return what it asked for in vain."""
        return {_permission(call) for call in self._calls(account) if _is_forbidden(call)}

    @property
    def _log(self) -> Path:
        return self.directory / "api-audit.jsonl"

    def _calls(self, account: str) -> list[Any]:
        name = f"system:serviceaccount:sluice:{account}"
        lines = map(json.loads, self._log.read_text(encoding="utf-8").splitlines())
        # What names no object is discovery, which everybody may read.
        return [line for line in lines if line["user"]["username"] == name and "objectRef" in line]


def _permission(call: Any) -> Permission:
    what = call["objectRef"]
    parts = (what.get("resource", ""), what.get("subresource", ""))
    return what.get("apiGroup", ""), "/".join(filter(None, parts)), call["verb"]


def _is_forbidden(call: Any) -> bool:
    code: int = call.get("responseStatus", {}).get("code", 0)
    return code == _FORBIDDEN
