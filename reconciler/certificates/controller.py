# SPDX-License-Identifier: Apache-2.0
"""Plans on the newest objects and carries it out, again and again, while its process leads."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol, TypeVar

from cryptography import x509

from reconciler.certificates.actuate import KINDS, Actuator, Installed, Writer
from reconciler.certificates.metrics import CertificateMetrics, Which
from reconciler.certificates.plan import (
    Command,
    Picture,
    Publish,
    Refuse,
    Step,
    Terms,
    WriteAuthority,
    plan,
    trusted_by_all,
)
from reconciler.certificates.view import Configuration, SecretView, Subject, configuration, secret
from reconciler.certificates.words import words
from reconciler.kube.backoff import DEFAULT_BACKOFF, Backoff
from reconciler.kube.errors import AlreadyExistsError, ApiError, ConflictError
from reconciler.kube.events import EventType, Regarding
from reconciler.kube.reflector import Reflector, ReflectorSettings, Runtime, Source
from reconciler.kube.resources import SECRETS, Resource, Selection
from reconciler.kube.store import Change, View

_LOG: Final = logging.getLogger(__name__)
_ACTION: Final = "ManageCertificates"
_STALE: Final = (ConflictError, AlreadyExistsError)

T = TypeVar("T")
Watch = Reflector[SecretView] | Reflector[Configuration]


class Api(Source, Writer, Protocol):
    """The part of a client that is needed."""


class Recorder(Protocol):
    """Where Events are handed in."""

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        type: EventType,  # noqa: A002 - the API's own name
        action: str,
    ) -> None:
        """Take an Event; never waits and never fails."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, in seconds."""

    settle_seconds: float = 0.1
    """What changes at once arrives one by one; no two passes follow one another sooner."""
    look_seconds: float = 10.0
    """Time passes without any change of an object."""
    retry: Backoff = DEFAULT_BACKOFF
    reflector: ReflectorSettings = field(default_factory=ReflectorSettings)


@dataclass(frozen=True, slots=True)
class Reports:
    """Whom the controller tells; `now` is the API server's time in Unix seconds."""

    now: Callable[[], float]
    recorder: Recorder
    metrics: CertificateMetrics


class Trust:
    """Since when every webhook trusts a certificate, by a clock that only goes forward."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[x509.Certificate, float] = {}

    def look(self, configurations: tuple[Configuration, ...]) -> Mapping[x509.Certificate, float]:
        """Return for how many seconds each has been seen to be trusted by all, without a break."""
        now = self._clock()
        trusted = trusted_by_all(configurations)
        self._since = {each: self._since.get(each, now) for each in trusted}
        return {each: now - since for each, since in self._since.items()}


_PACE: Final = Pace()
_RUNTIME: Final = Runtime()
_TERMS: Final = Terms()


class CertificateController:
    """Keeps the certificates of one installation while `run` runs."""

    def __init__(
        self,
        api: Api,
        installed: Installed,
        reports: Reports,
        terms: Terms = _TERMS,
        pace: Pace = _PACE,
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self._installed = installed
        self._reports = reports
        self._terms = terms
        self._pace = pace
        self._runtime = runtime
        self._actuator = Actuator(api, installed, terms.lifetimes)
        self._trust = Trust(runtime.clock)
        self._changed = asyncio.Event()
        self._failures = 0
        self._told: set[tuple[str, str]] = set()
        self._logged = ""
        place = (SECRETS, installed.namespace)
        self._authority = self._reflector(api, secret, *place, installed.authority)
        self._serving = self._reflector(api, secret, *place, installed.secret)
        self._configurations = tuple(
            self._reflector(
                api, partial(configuration, kind), resource, "", installed.configurations
            )
            for kind, resource in KINDS
        )

    async def run(self) -> None:
        """Watch and act until cancelled. Raises faults of our own."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for watch in self._watches:
                    tasks.create_task(watch.run(), name="watch of certificates")
                for watch in self._watches:
                    await watch.synced.wait()
                while True:
                    self._changed.clear()
                    await self._pass()
                    await self._wait()
        finally:
            self._reports.metrics.clear()

    @property
    def _watches(self) -> tuple[Watch, ...]:
        return (self._authority, self._serving, *self._configurations)

    async def _pass(self) -> None:
        picture = self._picture()
        commands = plan(picture, self._terms)
        self._reports.metrics.show(picture)
        self._reports.metrics.refused(sum(isinstance(each, Refuse) for each in commands))
        has_failed = False
        for command in commands:
            try:
                subject = await self._carry_out(command, picture.now)
            except _STALE as error:
                _LOG.debug("certificates: %s", error)  # the watch shows what it is by now
            except ApiError as error:
                has_failed = True
                self._complain(command, error)
            else:
                self._tell(command, subject)
        self._failures = self._failures + 1 if has_failed else 0

    def _picture(self) -> Picture:
        configurations = tuple(item for each in self._configurations for item in each.values())
        return Picture(
            authority=_only(self._authority),
            serving=_only(self._serving),
            configurations=configurations,
            names=self._installed.names,
            now=datetime.fromtimestamp(self._reports.now(), UTC),
            trusted_seconds=self._trust.look(configurations),
        )

    async def _carry_out(self, command: Command, now: datetime) -> Subject:
        match command:
            case Refuse(item):
                return item.subject
            case WriteAuthority():
                return await self._actuator.write_authority(command, now)
            case Publish():
                return await self._actuator.publish(command)
            case _:
                return await self._actuator.write_serving(command, now)

    def _tell(self, command: Command, subject: Subject) -> None:
        told = words(command)
        if told is None:
            return
        if isinstance(command, Refuse):
            # It holds until somebody acts, so that once is enough.
            if (subject.uid, told.note) in self._told:
                return
            self._told.add((subject.uid, told.note))
        level = logging.WARNING if told.is_warning else logging.INFO
        _LOG.log(level, "%s %s: %s", subject.kind, subject.name, told.note)
        self._count(command)
        self._reports.recorder.record(
            Regarding(
                subject.kind, subject.namespace, subject.name, subject.uid, subject.api_version
            ),
            str(told.reason),
            told.note,
            EventType.WARNING if told.is_warning else EventType.NORMAL,
            _ACTION,
        )

    def _count(self, command: Command) -> None:
        match command:
            case WriteAuthority(Step.BEGIN | Step.PROMOTE):
                self._reports.metrics.rotated(Which.AUTHORITY)
            case WriteAuthority() | Publish() | Refuse():
                return
            case _:
                self._reports.metrics.rotated(Which.SERVING)

    def _complain(self, command: Command, error: ApiError) -> None:
        self._reports.metrics.failed(type(error).__name__)
        text = f"{type(command).__name__}: {error}"
        if text != self._logged:
            self._logged = text
            _LOG.warning("certificates are not written: %s", text)

    async def _wait(self) -> None:
        if self._failures:
            seconds = self._pace.retry.seconds(self._failures, self._runtime.uniform)
            await self._runtime.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pace.look_seconds):
                await self._changed.wait()
        await self._runtime.sleep(self._pace.settle_seconds)

    def _reflector(
        self, api: Api, view: View[T], resource: Resource, namespace: str, name: str
    ) -> Reflector[T]:
        selection = Selection(resource, namespace, field_selector=f"metadata.name={name}")
        reflector = Reflector(api, selection, view, self._pace.reflector, self._runtime)
        reflector.subscribe(self._notice)
        return reflector

    def _notice(self, _: Change[T]) -> None:
        self._changed.set()


def _only(reflector: Reflector[SecretView]) -> SecretView | None:
    return next(iter(reflector.values()), None)
