# SPDX-License-Identifier: Apache-2.0
"""The annotation in which the mutating pass says what it did: a claim, never a proof.

It arrives at the validating pass under the user's own identity, so anybody may have written it.
It is used only to find the original pod; what the original deserves is decided anew.
"""

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from policies.pod.reading import MalformedError

MAX_LENGTH = 256 * 1024
"""What the API server stores of all annotations together; the claim of the largest pod fits."""
_VERSION = 1
MAX_ADDED = 256
"""More entries than profiles add to any list of a pod; a claim of more is none of ours. What is
claimed is looked for in lists as long as a pod can be, and among all profiles."""

_Sized = TypeVar("_Sized", bound=Sized)


@dataclass(frozen=True, slots=True)
class Original:
    """What Sluice changes in one container, as its user wrote it: GPU amounts, variables."""

    limits: Mapping[str, object]
    requests: Mapping[str, object]
    env: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What was asked, what was given, and what the pod has from Sluice.

    `affinity_created` tells that the pod had no required node selector term before Sluice made one.
    """

    generation: str
    policy: str | None = None
    profiles: Mapping[str, str] = field(default_factory=dict)
    exclusive: bool = False
    asked: Mapping[str, Original] = field(default_factory=dict)
    given: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Mapping[str, object], ...] = ()
    affinity_created: bool = False
    tolerations: tuple[Mapping[str, object], ...] = ()
    anti_affinity: tuple[Mapping[str, object], ...] = ()
    env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def to_annotation(self) -> str:
        """Return it as compact JSON with sorted keys: the same claim is the same bytes.

        Raises MalformedError.
        """
        plain: dict[str, Any] = {
            "v": _VERSION,
            "generation": self.generation,
            "policy": self.policy,
            "profiles": dict(self.profiles),
            "exclusive": self.exclusive,
            "asked": {
                name: {"limits": dict(o.limits), "requests": dict(o.requests)}
                | ({"env": list(o.env)} if o.env else {})
                for name, o in self.asked.items()
            },
            "given": {name: dict(amounts) for name, amounts in self.given.items()},
            "added": {
                "nodeSelector": dict(self.node_selector),
                "expressions": list(self.expressions),
                "affinityCreated": self.affinity_created,
                "tolerations": list(self.tolerations),
            },
        }
        # Left out where there are none, as in most pods.
        if self.anti_affinity:
            plain["added"]["antiAffinity"] = list(self.anti_affinity)
        if self.env:
            plain["added"]["env"] = {name: dict(found) for name, found in self.env.items()}
        try:
            return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()
        except TypeError as error:  # a manifest from a file may hold what the API cannot
            raise MalformedError("a number", "one of 64 bits") from error


def read_claim(text: str | None) -> Claim | None:
    """Return the claim of an annotation, or None if there is none or it is not of our making.

    Whatever is in it can be written as JSON again: no NaN, no half of a character.
    """
    if text is None or len(text) > MAX_LENGTH:
        return None
    try:
        plain = orjson.loads(text)
        return _claim(plain) if plain["v"] == _VERSION else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _claim(plain: Mapping[str, Any]) -> Claim:
    added = plain["added"]
    return Claim(
        generation=_string(plain["generation"]),
        policy=None if plain["policy"] is None else _string(plain["policy"]),
        profiles=_strings(plain["profiles"]),
        exclusive=bool(plain["exclusive"]),
        asked={
            _string(name): Original(
                _scalars(o["limits"]), _scalars(o["requests"]), _objects(o.get("env", []))
            )
            for name, o in plain["asked"].items()
        },
        given={_string(name): _counts(amounts) for name, amounts in plain["given"].items()},
        node_selector=_strings(_few(added["nodeSelector"])),
        expressions=_objects(added["expressions"]),
        affinity_created=bool(added["affinityCreated"]),
        tolerations=_objects(added["tolerations"]),
        anti_affinity=_objects(added.get("antiAffinity", [])),
        env={_string(name): _strings(_few(found)) for name, found in added.get("env", {}).items()},
    )


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _strings(value: Mapping[str, object]) -> Mapping[str, str]:
    return {_string(key): _string(item) for key, item in value.items()}


def _counts(value: Mapping[str, object]) -> Mapping[str, int]:
    if not all(type(item) is int for item in value.values()):
        raise TypeError
    return {key: item for key, item in value.items() if isinstance(item, int)}


def _scalars(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict) or not all(
        isinstance(item, str | int | float) for item in value.values()
    ):
        raise TypeError
    return value


def _objects(value: object) -> tuple[Mapping[str, object], ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TypeError
    return tuple(_few(value))


def _few(value: _Sized) -> _Sized:
    if len(value) > MAX_ADDED:
        raise TypeError
    return value
