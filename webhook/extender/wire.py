# SPDX-License-Identifier: Apache-2.0
"""The wire format of scheduler extenders: from bytes to questions, from answers to bytes.

Fields have the names of Go's structs, since most of them carry no JSON tags. Pure. Source:
Kubernetes k8s.io/kube-scheduler/extender/v1 types.go. What the answers are must not be here.

Whole nodes are 10 to 30 kB each, of which only the name is read: they are passed on as the bytes
that they came in, and nothing else of them becomes a Python object.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec
import orjson

Raw: TypeAlias = Mapping[str, Any]

_NOT_FOUND: Final = object()
_MAX_VIOLATIONS: Final = 2**63 - 1


class WireError(Exception):
    """A body that is no question of a scheduler; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Question:
    """ExtenderArgs: a pod, and nodes by name. `nodes` are whole ones as JSON, if those were sent.

    `is_whole` tells that nodes were sent and not names, so that the answer must be in kind.
    """

    pod: Raw
    names: tuple[str, ...]
    nodes: tuple[msgspec.Raw, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Sifted:
    """Which nodes may hold the pod, and why the others may not.

    A node in `unresolvable` is not looked at for preemption either, one in `failed` is.
    """

    names: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods of one node that would be taken off it, by UID."""

    uids: tuple[str, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Preemption:
    """ExtenderPreemptionArgs: a pod, and by node who would make room for it."""

    pod: Raw
    victims: Mapping[str, Victims]


class _Metadata(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _Metadata


class _NodeList(msgspec.Struct):
    # Go writes an empty slice that was never made as null.
    items: list[msgspec.Raw] | None = None


class _Args(msgspec.Struct):
    Pod: dict[str, Any]
    Nodes: _NodeList | None = None
    NodeNames: list[str] | None = None


_ARGS: Final = msgspec.json.Decoder(_Args)
_NODE: Final = msgspec.json.Decoder(_Node)


def decode_question(body: bytes) -> Question:
    """Return what filter and prioritize are asked. Raises WireError."""
    try:
        args = _ARGS.decode(body)
    except msgspec.ValidationError as error:
        raise WireError(f"the body is no question: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"the body is not JSON: {error}") from None
    if args.Nodes is None:
        return Question(args.Pod, tuple(args.NodeNames or ()))
    nodes = tuple(args.Nodes.items or ())
    return Question(args.Pod, tuple(map(_node_name, nodes)), nodes, is_whole=True)


def decode_preemption(body: bytes) -> Preemption:
    """Return what preempt is asked, in either of its protocols. Raises WireError."""
    args = _args(body)
    pod = _object(args, "Pod")
    for name, uid_of in (("NodeNameToMetaVictims", _meta_uid), ("NodeNameToVictims", _pod_uid)):
        found = args.get(name)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise WireError(f"{name} is not an object")
        victims = {node: _victims(raw, f"{name}.{node}", uid_of) for node, raw in found.items()}
        return Preemption(pod, victims)
    return Preemption(pod, {})


def encode_sifted(question: Question, sifted: Sifted) -> bytes:
    """Return ExtenderFilterResult in the form of the question: names, or whole nodes."""
    nodes, names = None, None
    if question.is_whole:
        passing = set(sifted.names)
        pairs = zip(question.names, question.nodes, strict=True)
        items = [orjson.Fragment(bytes(node)) for name, node in pairs if name in passing]
        nodes = {"metadata": {}, "items": items}
    else:
        names = list(sifted.names)  # null would say that no node holds the pod, without a reason
    result = {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": dict(sifted.failed),
        "FailedAndUnresolvableNodes": dict(sifted.unresolvable),
        "Error": "",
    }
    return orjson.dumps(result)


def encode_scores(scores: Mapping[str, int]) -> bytes:
    """Return HostPriorityList: a bare list, scores from 0 to 10."""
    return orjson.dumps([{"Host": host, "Score": score} for host, score in scores.items()])


def encode_preemption(victims: Mapping[str, Victims]) -> bytes:
    """Return ExtenderPreemptionResult, which has one form for both protocols."""
    nodes = {
        node: {
            "Pods": [{"UID": uid} for uid in found.uids],
            "NumPDBViolations": found.violations,
        }
        for node, found in victims.items()
    }
    return orjson.dumps({"NodeNameToMetaVictims": nodes})


def _args(body: bytes) -> Raw:
    try:
        args = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WireError(f"the body is not JSON: {error}") from None
    if not isinstance(args, dict):
        raise WireError("the body is not a JSON object")
    return args


def _object(parent: Raw, name: str) -> Raw:
    value = parent.get(name, _NOT_FOUND)
    if not isinstance(value, dict):
        raise WireError(f"{name} is {'missing' if value is _NOT_FOUND else 'not an object'}")
    return value


def _node_name(node: msgspec.Raw) -> str:
    try:
        return _NODE.decode(node).metadata.name
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError(f"a node in Nodes has no name: {error}") from None


def _victims(raw: object, where: str, uid_of: "_UidOf") -> Victims:
    if raw is None:
        return Victims(())
    if not isinstance(raw, dict):
        raise WireError(f"{where} is not an object")
    pods, violations = raw.get("Pods") or [], raw.get("NumPDBViolations", 0)
    if not isinstance(pods, list) or not all(isinstance(pod, dict) for pod in pods):
        raise WireError(f"{where}.Pods is not a list of objects")
    if type(violations) is not int or not 0 <= violations <= _MAX_VIOLATIONS:
        raise WireError(f"{where}.NumPDBViolations is not a whole number from 0")
    uids = tuple(uid_of(pod) for pod in pods)
    if not all(isinstance(uid, str) and uid for uid in uids):
        raise WireError(f"{where}.Pods: a pod has no UID")
    return Victims(uids, violations)


class _UidOf:
    """Where a victim's UID stands."""

    def __init__(self, *path: str) -> None:
        self._path = path

    def __call__(self, pod: Any) -> Any:
        for name in self._path:
            pod = pod.get(name) if isinstance(pod, dict) else None
        return pod


_meta_uid: Final = _UidOf("UID")
_pod_uid: Final = _UidOf("metadata", "uid")
