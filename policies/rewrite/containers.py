# SPDX-License-Identifier: Apache-2.0
"""The containers' part of a rewrite: GPU resources, and no devices where none were asked for."""

from collections.abc import Mapping, Sequence

from policies.model.keys import VISIBLE_DEVICES, VOID
from policies.model.quantity import QuantityError, parse_quantity
from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at, string_at
from policies.rewrite.claim import Claim, Original
from policies.rewrite.demand import Demand
from policies.vendors import Catalog

SECTIONS = ("initContainers", "containers", "ephemeralContainers")
_NVIDIA = "nvidia.com/"
_VOID: JsonObject = {"name": VISIBLE_DEVICES, "value": VOID}


def project_containers(
    spec: JsonObject, was: Claim, demand: Demand, catalog: Catalog
) -> dict[str, object]:
    """Return the container lists that change under a demand. Raises MalformedError."""
    changes: dict[str, object] = {}
    for section in SECTIONS:
        received = objects_at(spec, section)
        changed: list[JsonObject] | None = None
        for index, raw in enumerate(received):
            new = _container(raw, was, demand, catalog)
            if new is not raw:
                changed = list(received) if changed is None else changed
                changed[index] = new
        if changed is not None:
            changes[section] = changed
    return changes


def _container(raw: JsonObject, was: Claim, demand: Demand, catalog: Catalog) -> JsonObject:
    name = string_at(raw, "name")
    original, wanted = was.asked.get(name), demand.resources.get(name)
    received = resources = object_at(raw, "resources")
    if original is not None or wanted is not None:
        resources = _resources(received, original, wanted, catalog)
    env = objects_at(raw, "env")
    new_env = _without_void(env) if takes_nvidia(resources) else voided(env)
    if name in was.env or name in demand.env:
        mine = original.env if original is not None else ()
        new_env = _with_variables(new_env, was.env.get(name, {}), demand.env.get(name, {}), mine)
    if resources is received and new_env is env:
        return raw
    changed = dict(raw)
    if resources is not received and (resources or "resources" in raw):
        changed["resources"] = resources
    if new_env is not env:
        changed["env"] = new_env
    return changed


def _resources(
    received: JsonObject,
    original: Original | None,
    wanted: Mapping[str, int] | None,
    catalog: Catalog,
) -> JsonObject:
    limits, requests = object_at(received, "limits"), object_at(received, "requests")
    if wanted is not None:
        new_limits = _amounts(limits, wanted, catalog)
        new_requests = _amounts(requests, wanted, catalog)
    else:
        assert original is not None  # noqa: S101 - the caller has one or the other
        new_limits = _replaced(limits, original.limits, catalog)
        new_requests = _replaced(requests, original.requests, catalog)
    if new_limits is limits and new_requests is requests:
        return received
    changed = {**received, "limits": new_limits, "requests": new_requests}
    return {k: v for k, v in changed.items() if v or k in received}


def _amounts(received: JsonObject, wanted: Mapping[str, int], catalog: Catalog) -> JsonObject:
    """Spell the counts wanted as the pod already spells them, where the number is the same."""
    spelled = {
        name: received[name] if _is(received.get(name), count) else str(count)
        for name, count in wanted.items()
    }
    return _replaced(received, spelled, catalog)


def _is(value: object, count: int) -> bool:
    try:
        return parse_quantity(value) == count
    except QuantityError:
        return False


def _replaced(received: JsonObject, new: Mapping[str, object], catalog: Catalog) -> JsonObject:
    """Put these in the place of every GPU-like resource."""
    old = {name: value for name, value in received.items() if catalog.classify(name)}
    if old == new:
        return received
    return {**{k: v for k, v in received.items() if k not in old}, **new}


def takes_nvidia(resources: JsonObject) -> bool:
    """Tell whether a container gets an NVIDIA device; a count that cannot be read counts as one."""
    limits = object_at(resources, "limits")
    for name, value in limits.items():
        if name.lower().startswith(_NVIDIA) and not _is(value, 0):
            return True
    return False


def voided(env: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the environment with NVIDIA_VISIBLE_DEVICES=void, once; itself if it is so."""
    found = [index for index, entry in enumerate(env) if entry.get("name") == VISIBLE_DEVICES]
    if not found:
        return [*env, _VOID]
    if len(found) == 1 and env[found[0]] == _VOID:
        return env
    drop = set(found[1:])
    return [
        _VOID if index == found[0] else entry
        for index, entry in enumerate(env)
        if index not in drop
    ]


def _with_variables(
    env: Sequence[JsonObject],
    claimed: Mapping[str, str],
    wanted: Mapping[str, str],
    originals: Sequence[JsonObject],
) -> Sequence[JsonObject]:
    """Set these variables, each once, in the place of what is claimed to be ours.

    What is claimed and no longer wanted becomes the user's own again. Places are kept, since a
    variable may be referred to only by those after it.
    """
    own: dict[str, list[JsonObject]] = {}
    for entry in originals:
        own.setdefault(string_at(entry, "name"), []).append(entry)
    changed: list[JsonObject] = []
    done: set[str] = set()
    for entry in env:
        name = string_at(entry, "name")
        if name in wanted:
            ours = {"name": name, "value": wanted[name]}
            changed += [] if name in done else [entry if entry == ours else ours]
            done.add(name)
        elif name in claimed and entry == {"name": name, "value": claimed[name]}:
            changed += [] if name in done else own.get(name, [])
            done.add(name)
        else:
            changed.append(entry)
    changed += [{"name": n, "value": v} for n, v in wanted.items() if n not in done]
    same = len(changed) == len(env) and all(a is b for a, b in zip(changed, env, strict=True))
    return env if same else changed


def _without_void(env: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Take out a void that stood there before another webhook asked for a GPU."""
    return [entry for entry in env if entry != _VOID] if _VOID in env else env
