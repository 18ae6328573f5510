# SPDX-License-Identifier: Apache-2.0
"""A process that competes for a Lease, for tests that kill, stop and freeze it.

It tells what happens as lines of JSON. Its work declares an intent to change one ConfigMap, and
makes the change only when it is told to stop: as a leader would that was frozen before its write.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import orjson

from reconciler.kube.access import KubeconfigAccess
from reconciler.kube.client import Client
from reconciler.kube.elector import Elector, ElectorSettings, Leadership, LeadershipLostError
from reconciler.kube.errors import ApiError
from reconciler.kube.intents import Intent, IntentKind
from reconciler.kube.resources import Resource, Target
from reconciler.runtime.signals import stop_on_signals
from reconciler.runtime.tasks import supervise

CONFIGMAPS = Resource("", "v1", "configmaps")


@dataclass(frozen=True, slots=True)
class Told:
    """What the process is told on its command line."""

    kubeconfig: str
    namespace: str
    lease: str
    identity: str
    seconds: tuple[int, float, float]
    goal: str = ""

    def settings(self) -> ElectorSettings:
        return ElectorSettings(self.namespace, self.lease, self.identity, *self.seconds)


def say(**what: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(what) + b"\n")
    sys.stdout.buffer.flush()


async def work(told: Told, client: Client, leadership: Leadership) -> None:
    inherited = [intent.name for intent in leadership.inherited]
    if told.goal:
        target = Target(CONFIGMAPS, told.goal, told.namespace)
        found: Any = await client.get(target)
        version = found["metadata"]["resourceVersion"]
        uid = found["metadata"]["uid"]
        await leadership.declare(
            [Intent(IntentKind.RELEASE, told.namespace, told.goal, uid, version, "{}")]
        )
    say(event="leads", inherited=inherited)
    try:
        await asyncio.Event().wait()
    finally:
        say(event="ends", is_held=leadership.is_held())
        if told.goal:
            await try_all(leadership, client, target, version)


async def try_all(leadership: Leadership, client: Client, target: Target, version: str) -> None:
    """Do what a past leader must not be able to do."""
    try:
        await leadership.declare([])
        say(event="declared")
    except LeadershipLostError as error:
        say(event="not declared", error=str(error))
    stale = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
    change = {"op": "add", "path": "/data", "value": {"by": "a past leader"}}
    try:
        await client.patch_json(target, [stale, change])
        say(event="written")
    except ApiError as error:
        say(event="not written", error=type(error).__name__)


async def main(told: Told) -> None:
    source = KubeconfigAccess(told.kubeconfig)
    async with Client(source) as client, Client(source) as own:
        elector = Elector(own, told.settings())
        with stop_on_signals() as signals:
            await supervise(
                {
                    "elector": elector.run(lambda leadership: work(told, client, leadership)),
                    "signals": wait(signals.stop),
                }
            )
    say(event="ended")


async def wait(event: asyncio.Event) -> None:
    await event.wait()


if __name__ == "__main__":
    arguments = orjson.loads(sys.argv[1])
    asyncio.run(main(Told(**{**arguments, "seconds": tuple(arguments["seconds"])})))
