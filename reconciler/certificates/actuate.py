# SPDX-License-Identifier: Apache-2.0
"""Issues what was planned and writes it, each object only if it still is what was planned on.

What is to be done is not decided here. Bundles are written by JSON patches and not by server-side
apply: an entry of which an applier owned but the bundle could no longer be taken out of its
configuration by whoever applies the rest of it.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from certs.issue import issue_leaf
from certs.keyring import Keyring, Lifetimes, begin, expire, prepare, promote
from certs.keyring_pem import NAMES, encode_keyring
from certs.pem import certificates_pem, key_pem
from policies.model.keys import CERTIFICATES_BY_LEADER, CERTIFICATES_LABEL, ROTATE
from reconciler.certificates.plan import (
    CA,
    CERTIFICATE,
    KEY,
    Publish,
    Step,
    WriteAuthority,
    WriteServing,
)
from reconciler.certificates.view import SecretView, Subject
from reconciler.kube import raw
from reconciler.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Target

_RESOURCES: Final = {
    "MutatingWebhookConfiguration": MUTATING_WEBHOOKS,
    "ValidatingWebhookConfiguration": VALIDATING_WEBHOOKS,
}
KINDS: Final = tuple(_RESOURCES.items())

JsonObject = Mapping[str, object]


class Writer(Protocol):
    """The part of a client that is needed."""

    async def create(
        self, target: Target, body: JsonObject, *, dry_run: bool = False
    ) -> JsonObject:
        """Create an object in a collection."""
        ...

    async def patch_merge(self, target: Target, body: JsonObject) -> JsonObject:
        """Apply a merge patch."""
        ...

    async def patch_json(self, target: Target, operations: Sequence[JsonObject]) -> JsonObject:
        """Apply a JSON patch."""
        ...


@dataclass(frozen=True, slots=True)
class Installed:
    """What this installation's objects are called, and what its leaf must always be good for.

    `labels` are put on Secrets that are made.
    """

    namespace: str
    secret: str
    authority: str
    configurations: str
    names: tuple[str, ...]
    labels: Mapping[str, str]


class Actuator:
    """Carries out commands; every method raises ApiError and returns the object written to."""

    def __init__(self, writer: Writer, installed: Installed, lifetimes: Lifetimes) -> None:
        self._writer = writer
        self._installed = installed
        self._lifetimes = lifetimes

    async def write_authority(self, command: WriteAuthority, now: datetime) -> Subject:
        """Take a step with the authorities."""
        texts = encode_keyring(self._step(command, now))
        data: dict[str, bytes | None] = {name: texts.get(name) for name in NAMES}
        write = _Write(self._installed.authority, "Opaque", data, command.step is not Step.EXPIRE)
        return await self._write_secret(command.known, write)

    async def write_serving(self, command: WriteServing, now: datetime) -> Subject:
        """Issue a leaf, or keep it, and write it with what is to be trusted."""
        data: dict[str, bytes | None] = {CA: certificates_pem(command.keyring.trusted)}
        if command.reason:
            leaf = issue_leaf(command.keyring.current, command.names, now, self._lifetimes.leaf)
            data |= {CERTIFICATE: certificates_pem((leaf.certificate,)), KEY: key_pem(leaf.key)}
        write = _Write(self._installed.secret, "kubernetes.io/tls", data, bool(command.reason))
        return await self._write_secret(command.known, write)

    async def publish(self, command: Publish) -> Subject:
        """Write bundles into a configuration."""
        subject = command.configuration.subject
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": subject.version}
        bundles = [
            {"op": "add", "path": f"/webhooks/{place}/clientConfig/caBundle", "value": _text(pem)}
            for place, pem in command.bundles.items()
        ]
        target = Target(_RESOURCES[subject.kind], subject.name)
        await self._writer.patch_json(target, [version, *bundles])
        return subject

    def _step(self, command: WriteAuthority, now: datetime) -> Keyring:
        keyring = command.keyring
        if keyring is None:
            return begin(now, self._lifetimes, command.retired)
        match command.step:
            case Step.PREPARE:
                return prepare(keyring, now, self._lifetimes)
            case Step.PROMOTE:
                return promote(keyring, command.leaf, now)
            case _:
                return expire(keyring, now)

    async def _write_secret(self, known: SecretView | None, write: "_Write") -> Subject:
        namespace = self._installed.namespace
        if known is None:
            made = await self._writer.create(
                Target(SECRETS, namespace=namespace), self._new_secret(write)
            )
            uid = raw.text(raw.mapping(made, "metadata"), "uid")
            return Subject("v1", "Secret", namespace, write.name, uid, "")
        metadata: dict[str, object] = {
            "uid": known.subject.uid,
            "resourceVersion": known.subject.version,
        }
        if write.is_rotation:
            metadata["annotations"] = {ROTATE: None}
        # Null takes a key out (RFC 7386).
        data = {key: None if pem is None else _text(pem) for key, pem in write.data.items()}
        target = Target(SECRETS, write.name, namespace)
        await self._writer.patch_merge(target, {"metadata": metadata, "data": data})
        return known.subject

    def _new_secret(self, write: "_Write") -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": write.name,
                "namespace": self._installed.namespace,
                "labels": {**self._installed.labels, CERTIFICATES_LABEL: CERTIFICATES_BY_LEADER},
            },
            "type": write.type,
            "data": {key: _text(pem) for key, pem in write.data.items() if pem is not None},
        }


@dataclass(frozen=True, slots=True)
class _Write:
    """What a Secret is to hold; None takes a key out.

    It does the rotation that may have been asked for if `is_rotation`.
    """

    name: str
    type: str
    data: Mapping[str, bytes | None]
    is_rotation: bool


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode("ascii")
