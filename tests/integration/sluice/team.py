# SPDX-License-Identifier: Apache-2.0
"""One namespace of a tenant, and kubectl in it as its people use it."""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar

from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import Json, pod
from tests.integration.sluice.rest import Rest

DEADLINE_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05
_WARNING: Final = "Warning: "
_LEFT: Final = re.compile(r", [a-z-]+ has [0-9.]+ of [0-9.]+ left")

T = TypeVar("T")


def until(find: Callable[[], T], what: str, seconds: float = DEADLINE_SECONDS) -> T:
    """Return what `find` returns once that is true; fail if it is not in time."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(_POLL_SECONDS)
    return found


@dataclass(frozen=True, slots=True)
class Answer:
    """What kubectl printed: `out`, and what it wrote to standard error apart from warnings."""

    ok: bool
    out: str
    error: str
    warnings: tuple[str, ...]

    @property
    def lasting(self) -> tuple[str, ...]:
        """Return the warnings without what is left of a quota, which moves with other tests."""
        return tuple(_LEFT.sub("", warning) for warning in self.warnings)


class Team:
    """A namespace. What is refused is an answer here, and no exception."""

    def __init__(self, control_plane: ControlPlane, rest: Rest, namespace: str) -> None:
        self.namespace = namespace
        self._control_plane = control_plane
        self._rest = rest
        self.path = f"/api/v1/namespaces/{namespace}"

    def kubectl(self, *arguments: str, stdin: Json | None = None, user: str = "admin") -> Answer:
        """Run kubectl in the namespace."""
        done = self._control_plane.kubectl(
            *arguments, f"--namespace={self.namespace}", stdin=stdin, user=user, check=False
        )
        lines = done.stderr.splitlines()
        warnings = tuple(x.removeprefix(_WARNING) for x in lines if x.startswith(_WARNING))
        error = "\n".join(line for line in lines if not line.startswith(_WARNING))
        return Answer(done.returncode == 0, done.stdout, error, warnings)

    def apply(self, *objects: Json, user: str = "admin", dry_run: bool = False) -> Answer:
        """Run kubectl apply with these manifests."""
        options = ("--dry-run=server",) if dry_run else ()
        manifest = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.kubectl("apply", "--filename=-", *options, stdin=manifest, user=user)

    def create(self, *objects: Json) -> None:
        """Apply what must be accepted."""
        answer = self.apply(*objects)
        assert answer.ok, answer.error

    def get(self, *arguments: str) -> Json:
        """Return an object or a list as kubectl get gives it."""
        found: Json = self._control_plane.get(*arguments, f"--namespace={self.namespace}")
        return found

    def pod(self, name: str = "gpu") -> Json:
        """Return a pod, which must be there."""
        return self._rest.get(f"{self.path}/pods/{name}")

    def pods(self) -> list[Json]:
        """Return all pods of the namespace."""
        items: list[Json] = self._rest.get(f"{self.path}/pods")["items"]
        return items

    def events(self) -> list[Json]:
        """Return all Events of the namespace."""
        items: list[Json] = self._rest.get(f"{self.path}/events")["items"]
        return items

    def running(self, name: str = "gpu") -> Json:
        """Wait until a pod runs, and return it."""
        until(lambda: _is_ready(self.pod(name)), f"pod {name} runs in {self.namespace}")
        return self.pod(name)

    def placed(self, count: int = 1) -> list[Json]:
        """Wait until so many pods are on a node, and return all pods."""
        until(lambda: self._are_placed(count), f"{count} pods on nodes in {self.namespace}")
        return self.pods()

    def _are_placed(self, count: int) -> bool:
        found = self.pods()
        return len(found) == count and all(pod["spec"].get("nodeName") for pod in found)

    def event(self, reason: str, text: str) -> str:
        """Wait for an Event of this reason whose message holds `text`, and return the message."""

        def find() -> str:
            messages = (e["message"] for e in self.events() if e["reason"] == reason)
            return next((message for message in messages if text in message), "")

        return until(find, f"an Event {reason} with {text!r}")


def new_team(control_plane: ControlPlane, rest: Rest, tenant: str) -> Team:
    """Make a namespace of a tenant, and wait until its pods can be created and decided on."""
    name = f"{tenant}-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": {"tenant": tenant}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    status, answer = rest.request("POST", "/api/v1/namespaces", body)
    assert status == HTTPStatus.CREATED, answer
    made = Team(control_plane, rest, name)
    until(lambda: rest.exists(f"{made.path}/serviceaccounts/default"), "the default account")
    until(lambda: _is_known(rest, made.path), "Sluice's notice of a new namespace")
    return made


def _is_known(rest: Rest, path: str) -> bool:
    _, answer = rest.request("POST", f"{path}/pods?dryRun=All", pod(name="probe"))
    return "[NamespaceUnknown]" not in answer.get("message", "")


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
