# SPDX-License-Identifier: Apache-2.0
"""Installs rendered objects for one test's namespaces, with a recorder in Sluice's place."""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from certs.files import CertificateFiles, ensure, read_ca_bundle
from certs.names import service_names
from policies.vendors import build_catalog
from reconciler.manifests.options import ManifestOptions
from tests.controlplane import ControlPlane
from tests.support.webhook_recorder import WebhookRecorder

DEADLINE_SECONDS = 20.0
Object = Mapping[str, Any]


def make_certificates(directory: Path) -> CertificateFiles:
    return ensure(directory, service_names("sluice", "sluice"), datetime.now(UTC))


def until(condition: Callable[[], bool], what: str) -> None:
    """Return once the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS} s: {what}"
        time.sleep(0.05)


def container(name: str = "main", **fields: object) -> dict[str, object]:
    return {"name": name, "image": "registry.test/image", **fields}


def gpu_container(
    name: str = "main", resource: str = "nvidia.com/gpu", **fields: object
) -> dict[str, object]:
    return container(name, resources={"limits": {resource: "1"}}, **fields)


def pod(name: str, *containers: Object, **fields: Any) -> dict[str, Any]:
    """Return a pod; `annotations` and `labels` go to its metadata, other fields to its spec."""
    metadata = {key: fields.pop(key) for key in ("annotations", "labels") if key in fields}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": list(containers) or [container()], **fields},
    }


def as_list(objects: Iterable[Object]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def variables(pod_object: Object, section: str = "containers") -> dict[str, list[str | None]]:
    """Return all values of NVIDIA_VISIBLE_DEVICES of each container."""
    return {
        c["name"]: [
            e.get("value") for e in c.get("env", []) if e["name"] == "NVIDIA_VISIBLE_DEVICES"
        ]
        for c in pod_object["spec"].get(section, [])
    }


@dataclass(slots=True)
class Installation:
    """What one test has installed; `remove` takes it away again."""

    control_plane: ControlPlane
    namespace: str
    name: str = field(default_factory=lambda: f"sluice-{secrets.token_hex(3)}")
    _installed: list[Object] = field(default_factory=list)

    def options(self, **choices: Any) -> ManifestOptions:
        """Return options that touch nothing but this test's namespace, unless chosen otherwise."""
        defaults = {
            "name": self.name,
            "namespace": f"{self.name}-system",
            "only_namespaces": (self.namespace,),
            # The kinds of documents have the same names in every installation.
            "has_crds": False,
        }
        return ManifestOptions(build_catalog(), **{**defaults, **choices})

    def recorded_options(
        self, recorder: WebhookRecorder, files: CertificateFiles, **choices: Any
    ) -> ManifestOptions:
        bundle = read_ca_bundle(files.ca_certificate)
        return self.options(url=recorder.url, ca_bundle=bundle, **choices)

    def apply(self, objects: Iterable[Object], *flags: str) -> None:
        chosen = list(objects)
        if "--dry-run=server" not in flags:
            self._installed += chosen
        self.control_plane.kubectl(
            "apply", "--server-side", *flags, "--filename=-", stdin=as_list(chosen)
        )

    def remove(self) -> None:
        if self._installed:
            self.control_plane.kubectl(
                *("delete", "--ignore-not-found", "--wait=false", "--filename=-"),
                stdin=as_list(reversed(self._installed)),
            )

    def create(self, *objects: Object, dry_run: bool = False) -> tuple[list[Any], str]:
        """Create objects in the namespace; return what came of them, and what kubectl complained.

        Refused objects are left out.
        """
        flags = ["--dry-run=server"] if dry_run else []
        answer = self.control_plane.kubectl(
            *("create", "-n", self.namespace, "--output=json", *flags, "--filename=-"),
            stdin=as_list(objects),
            check=False,
        )
        return parse_objects(answer.stdout), answer.stderr

    def wait_for_void(self) -> None:
        """Wait until the admission policies act; it takes a moment after they were made."""
        until(
            lambda: (
                [variables(p)["main"] for p in self.create(pod("probe"), dry_run=True)[0]]
                == [["void"]]
            ),
            "a pod gets void",
        )
        until(
            lambda: "[DeviceVariable]" in self.create(from_field("probe"), dry_run=True)[1],
            "void is demanded",
        )

    def wait_for_calls(self, recorder: WebhookRecorder, entries: set[str]) -> None:
        """Wait until the API server calls all entries for a GPU pod and a plain pod."""
        seen: set[str] = set()

        def called() -> bool:
            self.create(pod("gpu", gpu_container()), pod("plain"), dry_run=True)
            seen.update(recorded.path for recorded in recorder.take())
            return entries <= seen

        until(called, f"{entries} are called")
        recorder.take()


def from_field(name: str) -> dict[str, Any]:
    """Return a pod that takes the variable from elsewhere, which a policy cannot overwrite."""
    source = {"fieldRef": {"fieldPath": "metadata.name"}}
    return pod(name, container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": source}]))


def parse_objects(text: str) -> list[Any]:
    """Return kubectl's JSON output, which is a List, one object, or several in a row."""
    decoder, position = json.JSONDecoder(), 0
    found: list[Any] = []
    text = text.strip()
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        found += value["items"] if value["kind"] == "List" else [value]
        while position < len(text) and text[position].isspace():
            position += 1
    return found


def entry_paths(objects: Iterable[Object]) -> list[Object]:
    """Let each webhook entry be called at a path of its own, so that calls can be told apart."""
    changed: list[Object] = []
    for item in objects:
        entries = [
            {**entry, "clientConfig": {**entry["clientConfig"], "url": _url(entry)}}
            for entry in item["webhooks"]
        ]
        changed.append({**item, "webhooks": entries})
    return changed


def _url(entry: Object) -> str:
    base = entry["clientConfig"]["url"].rpartition("/")[0]
    return f"{base}/{entry['name'].removesuffix('.sluice.dev')}"
