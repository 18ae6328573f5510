# SPDX-License-Identifier: Apache-2.0
"""Asks a webhook about a pod as the API server does, and prints what it would tell the user."""

import base64
import json
import ssl
import uuid
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import jsonpatch
from rich.console import Console
from rich.markup import escape

from policies.pod.defaulting import defaulted
from policies.preview.expand import PreviewPod
from policies.preview.preview import ANYBODY, review_request

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one pod: the last pass's response, the warnings of both, and both pods."""

    pod: PreviewPod
    response: Json
    warnings: tuple[str, ...]
    before: Json
    after: Json


class DemoClient:
    """Trusts one authority. Sends AdmissionReviews of `admission.k8s.io/v1`."""

    def __init__(self, authority: Path) -> None:
        self.authority = authority
        self._tls = ssl.create_default_context(cafile=str(authority))

    async def ask(self, url: str, pod: PreviewPod) -> Answer:
        """Play both passes of a pod's creation. Raises aiohttp.ClientError."""
        before: Json = deepcopy(dict(defaulted(pod.manifest, pod.namespace)))
        connector = aiohttp.TCPConnector(ssl=self._tls)
        async with aiohttp.ClientSession(url, connector=connector) as session:
            mutated = await _post(session, "/mutate", pod, before)
            after = _patched(before, mutated)
            if not mutated["allowed"]:
                return Answer(pod, mutated, (), before, before)
            validated = await _post(session, "/validate", pod, after)
        warnings = (*mutated.get("warnings", ()), *validated.get("warnings", ()))
        answer = {**validated, "auditAnnotations": mutated.get("auditAnnotations", {})}
        return Answer(pod, answer, tuple(dict.fromkeys(warnings)), before, after)


async def _post(session: aiohttp.ClientSession, path: str, pod: PreviewPod, manifest: Json) -> Json:
    request = {
        **review_request(pod, pod.user or ANYBODY),
        "uid": str(uuid.uuid4()),
        "object": manifest,
        "oldObject": None,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    async with session.post(f"{path}?timeout=5s", json=review) as answered:
        answered.raise_for_status()
        response: Json = (await answered.json())["response"]
    return response


def _patched(pod: Json, response: Json) -> Json:
    if "patch" not in response:
        return pod
    patched: Json = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))
    return patched


def print_answer(answer: Answer, console: Console) -> None:
    """Print what was asked, what it became, and why."""
    title = f"[bold]{escape(answer.pod.label)}[/bold] in namespace {escape(answer.pod.namespace)}"
    if not answer.response["allowed"]:
        console.print(f"{title}: [red]refused[/red]")
        console.print(f"  asked  {_asked(answer.before)}", markup=False)
        console.print(f"  why    {answer.response['status']['message']}\n", markup=False)
        return
    policy = answer.response.get("auditAnnotations", {}).get("policy")
    console.print(f"{title}: [green]allowed[/green]{f' by policy {policy}' if policy else ''}")
    console.print(f"  asked  {_asked(answer.before)}", markup=False)
    console.print(f"  became {_asked(answer.after)}", markup=False)
    for line in _placed(answer.before, answer.after):
        console.print(f"         {line}", markup=False)
    for warning in answer.warnings:
        console.print(f"  told   {warning}", markup=False)
    console.print()


def _asked(pod: Json) -> str:
    spec = pod.get("spec", {})
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    lines = (f"{c.get('name')}: {_amounts(c)}" for c in containers)
    return ", ".join(lines)


def _amounts(container: Mapping[str, Any]) -> str:
    limits = container.get("resources", {}).get("limits", {})
    gpus = [f"{name} {count}" for name, count in limits.items() if "/" in name]
    if gpus:
        return " + ".join(gpus)
    env = [e for e in container.get("env", ()) if e.get("name") == "NVIDIA_VISIBLE_DEVICES"]
    shown = (f" ({e['name']}={e.get('value')})" for e in env)
    return f"no GPU{''.join(shown)}"


def _placed(before: Json, after: Json) -> list[str]:
    old, new = before.get("spec", {}), after.get("spec", {})
    had = old.get("nodeSelector", {})
    lines = [
        f"on nodes with {key}={value}"
        for key, value in new.get("nodeSelector", {}).items()
        if had.get(key) != value
    ]
    if "affinity" in new and new["affinity"] != old.get("affinity"):
        required = new["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for expression in required["nodeSelectorTerms"][0].get("matchExpressions", ()):
            values = ", ".join(expression.get("values", ()))
            lines.append(f"where {expression['key']} {expression['operator']} {values}".rstrip())
    if new.get("schedulingGates") and not old.get("schedulingGates"):
        lines.append(f"held by gate {new['schedulingGates'][0]['name']} until its quota is charged")
    return lines
