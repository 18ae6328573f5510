# SPDX-License-Identifier: Apache-2.0
"""Makes and deletes pods as many people at once would, and remembers what it was told.

A call whose outcome is unknown is settled by asking again: the name is the same.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import aiohttp

from tests.prove.connection import Connection
from tests.prove.ending import Created
from tests.prove.observer import Observer
from tests.prove.scene import gpu_pod
from tests.prove.seen import GANG, GANG_SIZE
from tests.prove.world import Json, Tenant

WORKERS: Final = 16
_RETRY_SECONDS: Final = 0.2
_TRIES: Final = 300
_COMPLETE: Final = "pod-complete.stage.kwok.x-k8s.io/delay"
_FEED_SECONDS: Final = 0.05
_RETRIED: Final = ("failed calling webhook", "[NamespaceUnknown]", "[RewriteMissing]", "timeout")
"""A refusal because a replica is down or not warm, of which its text speaks: worth another try."""


class DriverError(Exception):
    """The cluster does not take what it must."""


class Driver:
    """People who create pods. `anchors` are the Jobs by namespace that pods say they belong to."""

    def __init__(
        self,
        connection: Connection,
        anchors: dict[str, Json],
        seed: int,
        schedulers: tuple[str, ...] = ("default-scheduler",),
    ) -> None:
        self.created = Created()
        self.ending: set[str] = set()
        """uids of pods that end by themselves once they run."""
        self.retries = 0
        self.connection = connection
        self._anchors = anchors
        self._schedulers = itertools.cycle(schedulers)
        self._random = random.Random(seed)  # noqa: S311 - a proof must be repeatable
        self._numbers = itertools.count()
        self._gangs = itertools.count()

    def pods(
        self, tenants: Iterable[Tenant], count: int, seconds: tuple[float, float]
    ) -> Iterator[Json]:
        """Yield pods of these tenants in turn that take so long (a range) once they run."""
        turns = itertools.cycle(tenants)
        for _ in range(count):
            yield self.pod(next(turns), self._random.uniform(*seconds))

    def pod(self, tenant: Tenant, seconds: float | None, **parts: object) -> Json:
        """Return a pod that ends after so long, never for None; schedulers take turns."""
        number = next(self._numbers)
        if seconds is not None:
            (namespace,) = tenant.namespaces
            parts["annotations"] = {_COMPLETE: f"{1000 * seconds:.0f}ms"}
            parts["ownerReferences"] = [self._anchors[namespace]]
        parts.setdefault("schedulerName", next(self._schedulers))
        return gpu_pod(tenant, f"p{number:05}", **parts)

    def gang(self, tenant: Tenant, size: int, seconds: float) -> list[Json]:
        """Return the pods of a gang that run for so long."""
        labels = {GANG: f"g{next(self._gangs):05}"}
        pods = [self.pod(tenant, seconds, labels=dict(labels)) for _ in range(size)]
        for pod in pods:
            pod["metadata"]["annotations"][GANG_SIZE] = str(size)
        return pods

    async def create_all(self, pods: Iterable[Json], workers: int = WORKERS) -> None:
        """Create all, so many at a time."""
        left = iter(pods)

        async def work() -> None:
            for pod in left:
                await self.create(pod)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(work())

    async def create(self, pod: Json) -> str:
        """Create one, and return its uid, empty if it was refused."""
        metadata = pod["metadata"]
        label = f"{metadata['namespace']}/{metadata['name']}"
        for _ in range(_TRIES):
            status, body = await self._post(pod)
            if status == HTTPStatus.CONFLICT:
                status, body = await self._read(label)
            if status in (HTTPStatus.CREATED, HTTPStatus.OK):
                uid = str(body["metadata"]["uid"])
                self.created.made[uid] = label
                if _COMPLETE in metadata.get("annotations", {}):
                    self.ending.add(uid)
                return uid
            if status and not _is_passing(status, body):
                self.created.refused[label] = str(body.get("message", status))
                return ""
            self.retries += 1
            await asyncio.sleep(_RETRY_SECONDS)
        raise DriverError(f"{label} was not taken in {_TRIES} tries: {status} {body}")

    async def delete(self, uid: str, *, at_once: bool = False) -> None:
        """Delete a pod as a person does; `at_once` without a grace period."""
        self.created.deleted.add(uid)
        options: Json = {"preconditions": {"uid": uid}}
        if at_once:
            options["gracePeriodSeconds"] = 0
        path = _path(self.created.made[uid])
        for _ in range(_TRIES):
            try:
                status, body = await self.connection.call("DELETE", path, options)
            except (aiohttp.ClientError, OSError, TimeoutError):
                status, body = 0, {}
            if status in (HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                return
            await asyncio.sleep(_RETRY_SECONDS)
        raise DriverError(f"{path} was not deleted: {status} {body}")

    @asynccontextmanager
    async def churn(
        self, observer: Observer, make: Callable[[], list[Json]], waiting: int
    ) -> AsyncIterator[None]:
        """During the block create pods whenever fewer than so many wait: all of what is made."""
        is_over = asyncio.Event()

        async def feed() -> None:
            while not is_over.is_set():
                if len(observer.waiting()) < waiting:
                    for pod in make():
                        await self.create(pod)
                else:
                    await asyncio.sleep(_FEED_SECONDS)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(feed())
            try:
                yield
            finally:
                is_over.set()

    async def _post(self, pod: Json) -> tuple[int, Json]:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        try:
            return await self.connection.call("POST", path, pod)
        except (aiohttp.ClientError, OSError, TimeoutError):
            return 0, {}

    async def _read(self, label: str) -> tuple[int, Json]:
        try:
            return await self.connection.call("GET", _path(label))
        except (aiohttp.ClientError, OSError, TimeoutError):
            return 0, {}


async def make_anchors(connection: Connection, namespaces: Iterable[str]) -> dict[str, Json]:
    """Create a suspended Job in each namespace, and return references to them.

    Simulated kubelets complete only pods of Jobs, and what refers to no owner is collected.
    """
    found = {}
    for namespace in namespaces:
        path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        status, job = await connection.call("POST", path, _ANCHOR)
        if status != HTTPStatus.CREATED:
            raise DriverError(f"no Job in {namespace}: {status} {job}")
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "anchor"}
        found[namespace] = {**reference, "uid": job["metadata"]["uid"]}
    return found


def _is_passing(status: int, body: Json) -> bool:
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return True
    return any(text in str(body.get("message", "")) for text in _RETRIED)


def _path(label: str) -> str:
    namespace, _, name = label.partition("/")
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


_ANCHOR: Final[Json] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "anchor"},
    "spec": {
        "suspend": True,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "none", "image": "registry.test/none"}],
            }
        },
    },
}
