# SPDX-License-Identifier: Apache-2.0
"""Golden cases: folders of a question and the answer that somebody has read and found right.

A case is `tests/golden/<topic>/<the rule as a sentence>/` with

    case.yaml      the shared set of policies and facts, and how the request is sent: see `_CASE`
    request.yaml   one or several AdmissionReviews (what is left out is filled in), or manifests
    response.json  what each pass answers, patches decoded
    policies.yaml, facts.yaml   only where the case has its own instead of the set's

A document goes the way of a real creation: mutating pass, patch, what another webhook does in
between (`between`, a JSON patch), mutating pass again (`reinvoked`), validating pass.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import jsonpatch
import orjson
import yaml

from policies.decide import decide
from policies.documents.facts import parse_facts
from policies.documents.source import SourceText
from policies.model.decision import Decision
from policies.model.facts import Facts
from policies.model.keys import DECISION
from policies.model.policyset import PolicySet
from policies.model.request import Phase
from tests.support.builders import NOW, Json, catalog, policy_set
from tests.support.pods import containers_of, gpus_of
from webhook.envelope import parse

ROOT: Final = Path(__file__).parent.parent / "golden"
SETS: Final = ROOT / "sets"
UPDATE: Final = "SLUICE_UPDATE_GOLDEN"
PATHS: Final = {Phase.MUTATE: "/mutate", Phase.VALIDATE: "/validate"}

_CASE: Final = {"use", "covers", "phases", "between", "reinvoked", "request"}
"""`request` holds fields that every request of the case has; `covers` the checks and modes that
the case is the example of; `phases` which passes are asked, where not both."""

_FILES: Final = {"case.yaml", "request.yaml", "response.json"}
_OWN: Final = {"policies.yaml", "facts.yaml"}

_RESOURCES: Final = {
    "Pod": ("", "v1", "pods"),
    "ResourceClaim": ("resource.k8s.io", "v1", "resourceclaims"),
    "ResourceClaimTemplate": ("resource.k8s.io", "v1", "resourceclaimtemplates"),
    "Eviction": ("policy", "v1", "evictions"),
    "Binding": ("", "v1", "bindings"),
    **{
        kind.kind: (kind.group, kind.versions[0], kind.resource)
        for kind in catalog().workloads.kinds
    },
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call of the webhook: where to, what is sent, and what the core answers now."""

    step: str
    path: str
    review: bytes
    decision: Decision


@dataclass(frozen=True, slots=True)
class Case:
    """One folder. `exchanges` are the calls that its documents lead to, per document."""

    folder: Path
    policies: PolicySet
    facts: Facts
    exchanges: tuple[tuple[Exchange, ...], ...] = field(default=())

    @property
    def name(self) -> str:
        """Return `topic/the-rule`."""
        return str(self.folder.relative_to(ROOT))

    @property
    def response(self) -> Path:
        """Return the file with the expected answers."""
        return self.folder / "response.json"

    @property
    def expected(self) -> list[Json]:
        """Return the expected answers, one object for each document, keyed by step."""
        found: list[Json] = orjson.loads(self.response.read_bytes())
        return found

    def answers(self) -> list[Json]:
        """Return what the core answers now, in the form of the file."""
        return [
            {e.step: describe(self.policies, e.decision, e.review) for e in document}
            for document in self.exchanges
        ]


def cases() -> list[Case]:
    """Return all cases in name order."""
    return [load_case(folder) for folder in folders()]


def folders() -> list[Path]:
    """Return the folders of all cases."""
    return sorted(
        p for p in ROOT.glob("*/*") if p.is_dir() and p.parent != SETS and p.name[0] != "_"
    )


@cache
def load_case(folder: Path) -> Case:
    """Read a case and play it through the core, once."""
    return play_case(folder)


def play_case(folder: Path) -> Case:
    """Read a case and play it through the core."""
    settings = _read(folder / "case.yaml")
    shared = shared_set(folder)
    own = {name: folder / name for name in _OWN if (folder / name).exists()}
    policies = policy_set((own.get("policies.yaml") or shared / "policies.yaml").read_text("utf-8"))
    facts = _facts(own.get("facts.yaml") or shared / "facts.yaml")
    documents = yaml.safe_load_all((folder / "request.yaml").read_text("utf-8"))
    reviews = [_review(d, settings.get("request", {}), n) for n, d in enumerate(documents, 1)]
    player = _Player(policies, facts, settings)
    return Case(
        folder=folder,
        policies=policies,
        facts=facts,
        exchanges=tuple(tuple(player.play(review)) for review in reviews),
    )


def shared_set(folder: Path) -> Path:
    """Return the set that a case uses."""
    return SETS / str(_read(folder / "case.yaml")["use"])


def covered(folder: Path) -> frozenset[str]:
    """Return the checks and modes that a case is the example of, without playing it."""
    return frozenset(_read(folder / "case.yaml").get("covers", ()))


def misplaced(folder: Path) -> list[str]:
    """Return what is missing, surplus or misspelt in a case's folder."""
    names = {path.name for path in folder.iterdir()}
    faults = [f"{name} is missing" for name in sorted(_FILES - names)]
    faults += [f"{name} does not belong there" for name in sorted(names - _FILES - _OWN)]
    if "case.yaml" in names:
        unknown = _read(folder / "case.yaml").keys() - _CASE
        faults += [f"case.yaml: {key} is no field" for key in sorted(unknown)]
    return faults


def render(answers: Iterable[Mapping[str, Any]]) -> str:
    """Return answers as the file holds them."""
    return json.dumps(list(answers), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def describe(policies: PolicySet, decision: Decision, review: bytes) -> Json:
    """Return a decision as JSON that reads well: no empty fields, the claim and patch decoded."""
    patch = readable_patch(decision.patch)
    plain = {
        "verdict": decision.verdict,
        "reasons": decision.reasons,
        "message": decision.message,
        "warnings": decision.warnings,
        "patch": patch,
        "resources": _resources(orjson.loads(review), patch) if decision.allowed else {},
        "tenant": decision.tenant,
        "policy": decision.policy,
        "profile": decision.profile,
        "exclusive": decision.exclusive,
        "matched": decision.matched,
        "asked": decision.asked,
        "given": decision.given,
        "chargeMilli": decision.charge_milli,
        "strength": decision.strength,
        "memoryMib": decision.memory_mib,
    }
    text = orjson.dumps({key: value for key, value in plain.items() if value}).decode()
    shown: Json = orjson.loads(text.replace(policies.generation, "<generation>"))
    return shown


def visible(shown: Mapping[str, Any]) -> Json:
    """Return the part of a described decision that the API server gets to see."""
    return {
        "allowed": shown["verdict"] == "Allowed",
        "message": shown.get("message", ""),
        "warnings": shown.get("warnings", []),
        "patch": shown.get("patch", []),
    }


def readable_patch(patch: Iterable[Mapping[str, object]]) -> list[Json]:
    """Return operations with the text of the decision annotation parsed."""
    operations: list[Json] = orjson.loads(orjson.dumps(list(patch)))
    for operation in operations:
        value = operation.get("value")
        if operation["path"].endswith(DECISION.replace("/", "~1")) and isinstance(value, str):
            operation["value"] = orjson.loads(value)
        elif isinstance(value, dict) and DECISION in value:
            value[DECISION] = orjson.loads(value[DECISION])
    return operations


@dataclass(frozen=True, slots=True)
class _Player:
    policies: PolicySet
    facts: Facts
    settings: Json

    def play(self, review: Json) -> Iterator[Exchange]:
        """Yield the calls that one document leads to; a refusal ends them, as it does really."""
        phases = [Phase(name) for name in self.settings.get("phases", Phase)]
        for step, phase, prepare in self._steps():
            if phase not in phases:
                continue
            prepare(review["request"])
            exchange = self._ask(step, phase, review)
            yield exchange
            if not exchange.decision.allowed:
                return
            _apply(review["request"], exchange.decision.patch)

    def _steps(self) -> Iterator[tuple[str, Phase, Callable[[Json], None]]]:
        between = self.settings.get("between", [])
        yield "mutate", Phase.MUTATE, _nothing
        if between and self.settings.get("reinvoked", True):
            yield "mutateAgain", Phase.MUTATE, lambda request: _apply(request, between)
            between = []
        yield "validate", Phase.VALIDATE, lambda request: _stored(request, between)

    def _ask(self, step: str, phase: Phase, review: Json) -> Exchange:
        body = orjson.dumps(review)
        decision = decide(self.policies, self.facts, parse(body, phase))
        return Exchange(step, PATHS[phase], body, decision)


def _nothing(_: Json) -> None:
    pass


def _apply(request: Json, patch: Iterable[Mapping[str, object]]) -> None:
    operations = orjson.loads(orjson.dumps(list(patch)))
    if operations:
        request["object"] = jsonpatch.apply_patch(request["object"], operations)


def _stored(request: Json, between: list[Json]) -> None:
    """Do what the API server does before the validating pass: name and identify a new pod."""
    _apply(request, between)
    metadata = (request["object"] or {}).get("metadata")
    if request["operation"] == "CREATE" and isinstance(metadata, dict):
        metadata["uid"] = "8d6d4c1e-0000-4000-8000-000000000001"
        metadata.setdefault("name", f"{metadata.get('generateName', '')}x7k2p")


def _review(document: Json, common: Json, number: int) -> Json:
    """Return a whole AdmissionReview of what a request.yaml holds."""
    is_review = document["kind"] == "AdmissionReview"
    given: Json = document["request"] if is_review else {"object": _defaulted(document)}
    about = given.get("object") or given.get("oldObject") or {}
    group, version, resource = _RESOURCES[about.get("kind", "Pod")]
    kind = {"group": group, "version": version, "kind": about.get("kind", "Pod")}
    named = {"group": group, "version": version, "resource": resource}
    metadata = about.get("metadata") or {}
    request = {
        "uid": f"2f1f7a52-0000-4000-8000-{number:012}",
        "kind": kind,
        "resource": named,
        "requestKind": kind,
        "requestResource": named,
        "namespace": metadata.get("namespace", ""),
        "operation": "CREATE",
        "userInfo": {"username": "dana@example.com", "groups": ["system:authenticated"]},
        "object": None,
        "oldObject": None,
        "dryRun": False,
        **common,
        **given,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _defaulted(manifest: Json) -> Json:
    """Return a manifest as the API server sends it on; custom resources stay as they are."""
    if "." in manifest["apiVersion"].partition("/")[0]:
        return manifest
    manifest.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    spec = manifest.get("spec") or {}
    for step in ("jobTemplate", "spec", "template", "spec"):
        spec = spec.get(step) or spec
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        for key in resources.keys() & {"limits", "requests"}:
            resources[key] = {name: _spelt(amount) for name, amount in resources[key].items()}
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
    return manifest


def _spelt(amount: object) -> object:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return str(amount) if is_number else amount


def _resources(review: Json, patch: list[Json]) -> Json:
    """Return the GPUs that each container of a pod has after the patch."""
    request = review["request"]
    if request["kind"]["kind"] != "Pod" or not isinstance(request["object"], dict):
        return {}
    after = jsonpatch.apply_patch(request["object"], patch)
    return {c["name"]: gpus for c in containers_of(after) if (gpus := gpus_of(c))}


def _read(path: Path) -> Json:
    found: Json = yaml.safe_load(path.read_text("utf-8"))
    return found


@lru_cache(maxsize=64)
def _facts(path: Path) -> Facts:
    source = SourceText(str(path), path.read_bytes())
    facts, problems = parse_facts(source, catalog=catalog(), now=NOW)
    assert facts is not None, "\n".join(map(str, problems))
    return facts
