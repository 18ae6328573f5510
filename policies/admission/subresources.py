# SPDX-License-Identifier: Apache-2.0
"""Changes of running pods through their subresources: debug containers and resizes."""

from collections.abc import Iterator

from policies.checks import device_variables, host_access
from policies.model.decision import Decision, Verdict, Violation
from policies.model.facts import Facts
from policies.model.keys import VISIBLE_DEVICES, VOID
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.request import JsonObject, Phase, Request
from policies.pod.reading import object_at, objects_at, string_at
from policies.pod.view import Container, read_pod
from policies.rewrite.containers import voided
from policies.rewrite.patch import Operation, diff
from policies.rewrite.project import with_fields

_SECTION = "ephemeralContainers"


def decide_ephemeral(
    policies: PolicySet, facts: Facts, request: Request, raw: JsonObject
) -> Decision:
    """Give a new debug container no devices, and refuse one that takes them.

    Only new containers are looked at: the others can no longer change. Raises MalformedError.
    """
    old = {string_at(c, "name") for c in _ephemeral(request.old_object or {})}
    pod = read_pod(raw, policies.catalog)
    takes_gpus = pod.asks_gpus
    new = [c for c in pod.containers if c.section == _SECTION and c.name not in old]
    violations = [v for c in new for v in _judge(c, takes_gpus=takes_gpus)]
    patch: tuple[Operation, ...] = ()
    if not violations:
        patch = _void(raw, old)
        if patch and request.phase is Phase.VALIDATE and not policies.settings.observes:
            violations = [
                _not_void(c)
                for c in new
                if voided(objects_at(c.raw, "env")) is not c.raw.get("env")
            ]
    return Decision(
        verdict=Verdict.DENIED if violations else Verdict.ALLOWED,
        generation=policies.generation,
        violations=tuple(violations),
        patch=patch if request.phase is Phase.MUTATE and not violations else (),
        touches_gpus=takes_gpus or bool(violations),
        stale_seconds=facts.stale_seconds,
    )


def _ephemeral(pod: JsonObject) -> list[JsonObject]:
    return list(objects_at(object_at(pod, "spec"), _SECTION))


def _judge(container: Container, *, takes_gpus: bool) -> Iterator[Violation]:
    yield from host_access.container_violations(container, takes_gpus=takes_gpus)
    for entry in objects_at(container.raw, "env"):
        variable = string_at(entry, "name")
        if variable in device_variables.EVERYWHERE:
            yield Violation(
                Reason.DEVICE_VARIABLE,
                f"debug container {container.name}: the variable {variable} opens devices: "
                "take it out",
            )


def _void(raw: JsonObject, old: set[str]) -> tuple[Operation, ...]:
    spec = object_at(raw, "spec")
    containers = [
        with_fields(c, {"env": voided(objects_at(c, "env"))})
        if string_at(c, "name") not in old
        else c
        for c in objects_at(spec, _SECTION)
    ]
    return diff(raw, {**raw, "spec": {**spec, _SECTION: containers}})


def _not_void(container: Container) -> Violation:
    return Violation(
        Reason.REWRITE_MISSING,
        f"debug container {container.name} lacks {VISIBLE_DEVICES}={VOID}, "
        "which keeps devices out of it: try again",
    )


def decide_resize(policies: PolicySet, facts: Facts, request: Request, raw: JsonObject) -> Decision:
    """Refuse a resize that changes GPU amounts; it is for CPU and memory. Raises MalformedError."""
    before = read_pod(request.old_object or {}, policies.catalog)
    after = read_pod(raw, policies.catalog)
    had = {c.name: c.gpus for c in before.containers if c.gpus}
    has = {c.name: c.gpus for c in after.containers if c.gpus}
    violations = tuple(
        Violation(
            Reason.OWNED_KEY,
            f"container {name}: GPUs cannot be resized: make a new pod",
        )
        for name in sorted(had.keys() | has.keys())
        if had.get(name) != has.get(name)
    )
    return Decision(
        verdict=Verdict.DENIED if violations else Verdict.ALLOWED,
        generation=policies.generation,
        violations=violations,
        touches_gpus=bool(had or has),
        stale_seconds=facts.stale_seconds,
    )
