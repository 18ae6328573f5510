# SPDX-License-Identifier: Apache-2.0
"""Secrets and webhook configurations in memory, a leader that keeps certificates in them, and time.

The planner, the actuator and the views are the real ones; what stands in for the API server checks
resourceVersions. Everything that was ever served or could be trusted is remembered.
"""

import base64
import copy
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
from cryptography import x509

from certs.keyring import Lifetimes
from certs.names import service_names
from certs.pem import parse_certificates
from certs.verify import find_faults, is_valid_at
from reconciler.certificates.actuate import Actuator, Installed
from reconciler.certificates.controller import Trust
from reconciler.certificates.plan import (
    CERTIFICATE,
    SETTLE_SECONDS,
    Command,
    Picture,
    Publish,
    Refuse,
    WriteAuthority,
    plan,
)
from reconciler.certificates.view import Configuration, configuration, secret
from reconciler.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from reconciler.kube.resources import Target
from tests.support.fake_apiserver import merged

START = datetime(2031, 5, 17, 12, tzinfo=UTC)
INSTALLED = Installed(
    namespace="sluice",
    secret="sluice-tls",
    authority="sluice-authority",
    configurations="sluice",
    names=service_names("sluice", "sluice"),
    labels={"app.kubernetes.io/name": "sluice", "app.kubernetes.io/instance": "sluice"},
)
HOST = "sluice.sluice.svc"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

Object = dict[str, Any]


class World:
    """One cluster's objects by kind and name, seen by a leader and by API servers that lag."""

    def __init__(self, lifetimes: Lifetimes | None = None) -> None:
        self.objects: dict[str, Object] = {}
        self.now = START
        self.writes = 0
        self.leaves: set[x509.Certificate] = set()
        """Everything that replicas may ever have loaded."""
        self.refused: list[Refuse] = []
        self.failed: list[str] = []
        """Handshakes that failed while a leader worked, if they are to be looked for."""
        self.checks = False
        self._lifetimes = lifetimes or Lifetimes()
        self._actuator = Actuator(self, INSTALLED, self._lifetimes)
        self._clock = 0.0
        self._version = 0
        self._trust = Trust(lambda: self._clock)
        self._views: list[tuple[float, tuple[Configuration, ...]]] = []

    # What a test does

    def install(self) -> None:
        """Apply the webhook configurations, without a bundle."""
        for kind in KINDS:
            self.put(kind, "sluice", configuration_object(kind))

    def put(self, kind: str, name: str, item: Object) -> Object:
        """Create or replace an object, as a person would."""
        self._version += 1
        new = copy.deepcopy(item)
        new["metadata"] |= {"name": name, "resourceVersion": str(self._version)}
        new["metadata"].setdefault("uid", f"uid-{kind}-{name}-{self._version}")
        self.objects[name if kind == "Secret" else kind] = new
        self._remember()
        return new

    def remove(self, key: str) -> None:
        """Delete an object, if it is there."""
        self.objects.pop(key, None)

    def edit(self, key: str, change: Callable[[Object], None]) -> None:
        """Change an object by hand, if it is there."""
        found = self.objects.get(key)
        if found is not None:
            changed = copy.deepcopy(found)
            change(changed)
            kind = "Secret" if key.startswith("sluice-") else key
            self.put(kind, found["metadata"]["name"], changed)

    def pass_time(self, seconds: float) -> None:
        """Let time pass without a leader."""
        self._clock += seconds
        self.now += timedelta(seconds=seconds)

    def set_clock(self, change: timedelta) -> None:
        """Set the API server's clock; no time passes."""
        self.now += change

    def replace_leader(self) -> None:
        """Have a leader that has seen nothing yet."""
        self._trust = Trust(lambda: self._clock)

    def lead(self, seconds: float = 120.0, step: float = 10.0) -> None:
        """Have the leader work for so long."""
        while seconds > 0:
            self.look()
            for _ in range(8):
                if not self.act():
                    break
                self.failed += self.failing() if self.checks else []
            self.pass_time(min(step, seconds))
            seconds -= step
        self.look()

    # What a leader does

    def picture(self) -> Picture:
        """Return what the leader sees."""
        found = self.configurations()
        serving, authority = (self.objects.get(name) for name in _SECRETS)
        return Picture(
            authority=secret(authority) if authority else None,
            serving=secret(serving) if serving else None,
            configurations=found,
            names=INSTALLED.names,
            now=self.now,
            trusted_seconds=self._trust.look(found),
        )

    def act(self) -> bool:
        """Plan and carry out once; tell whether anything was written."""
        picture = self.picture()
        before = self.writes
        for command in plan(picture):
            _finish(self._carry_out(command, picture.now))
            self.look()
        return self.writes > before

    async def _carry_out(self, command: Command, now: datetime) -> None:
        match command:
            case Refuse():
                self.refused.append(command)
            case WriteAuthority():
                await self._actuator.write_authority(command, now)
            case Publish():
                await self._actuator.publish(command)
            case _:
                await self._actuator.write_serving(command, now)

    # What there is

    def configurations(self) -> tuple[Configuration, ...]:
        """Return the configurations as they are."""
        return tuple(
            configuration(kind, self.objects[kind]) for kind in KINDS if kind in self.objects
        )

    @property
    def leaf(self) -> x509.Certificate | None:
        """Return what replicas are to serve."""
        return self.picture().leaf

    def look(self) -> None:
        """Have the API servers' views noted: each may be any of those not older than they lag."""
        self._remember()
        self._views.append((self._clock, self.configurations()))
        oldest = self._clock - (SETTLE_SECONDS - 1)
        known = [each for each in self._views if each[0] >= oldest]
        # The newest of those before was true until the first within the time.
        before = [each for each in self._views if each[0] < oldest]
        self._views = [*before[-1:], *known]

    def forget(self) -> None:
        """Have nothing be served or believed but what is there now."""
        self.leaves.clear()
        self._views.clear()
        self.look()

    def failing(self) -> list[str]:
        """Return every handshake that may happen now and fails, of leaves that have not ended."""
        bundles = {
            entry.trusted for _, view in self._views for each in view for entry in each.entries
        }
        return [
            f"{leaf.serial_number}: {fault}"
            for leaf in self.leaves
            if is_valid_at(leaf, self.now)
            for trusted in bundles
            for fault in find_faults((leaf,), trusted, (HOST,), self.now)
        ]

    def is_served(self) -> bool:
        """Tell whether what replicas are to serve is good now for every entry."""
        leaf = self.leaf
        entries = [entry for each in self.configurations() for entry in each.entries]
        return leaf is not None and not any(
            find_faults((leaf,), entry.trusted, (HOST,), self.now) for entry in entries
        )

    def trusted(self) -> list[tuple[x509.Certificate, ...]]:
        """Return what each entry trusts."""
        return [entry.trusted for each in self.configurations() for entry in each.entries]

    def _remember(self) -> None:
        found = self.objects.get(INSTALLED.secret, {}).get("data", {}).get(CERTIFICATE)
        if found:
            try:
                self.leaves.add(parse_certificates(base64.b64decode(found), "")[0])
            except Exception:  # noqa: BLE001 - a test wrote nonsense, which no replica takes
                return

    # What stands in for a client

    async def create(
        self, target: Target, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> Mapping[str, Any]:
        name = body["metadata"]["name"]
        if name in self.objects:
            raise AlreadyExistsError(name)
        self.writes += 1
        return self.put("Secret", name, dict(body))

    async def patch_merge(self, target: Target, body: Mapping[str, Any]) -> Mapping[str, Any]:
        known = self.objects.get(target.name)
        if known is None:
            raise NotFoundError(target.name)
        _check(known, body["metadata"]["resourceVersion"], body["metadata"].get("uid"))
        self.writes += 1
        return self.put("Secret", target.name, merged(known, body))

    async def patch_json(
        self, target: Target, operations: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        (kind,) = (kind for kind in KINDS if target.resource.plural == f"{kind.lower()}s")
        known = self.objects.get(kind)
        if known is None:
            raise NotFoundError(target.name)
        assert operations[0]["path"] == "/metadata/resourceVersion"
        _check(known, operations[0]["value"])
        self.writes += 1
        patched: Object = jsonpatch.apply_patch(known, list(operations))
        return self.put(kind, target.name, patched)


_SECRETS = (INSTALLED.secret, INSTALLED.authority)


def configuration_object(kind: str, **metadata: Any) -> Object:
    """Return a configuration as the manifests render it, with two entries."""
    service = {"name": "sluice", "namespace": "sluice", "path": "/x", "port": 443}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "sluice", "labels": {"app.kubernetes.io/name": "sluice"}, **metadata},
        "webhooks": [
            {"name": name, "clientConfig": {"service": dict(service)}} for name in ("a", "b")
        ],
    }


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run what never has to wait, without an event loop."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits for something")


def _check(known: Object, version: str, uid: str | None = None) -> None:
    metadata = known["metadata"]
    if metadata["resourceVersion"] != version or uid not in (None, metadata["uid"]):
        raise ConflictError("the object has been modified")
