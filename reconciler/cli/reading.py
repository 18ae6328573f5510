# SPDX-License-Identifier: Apache-2.0
"""Reads the cluster for commands: consistent lists, and one clear line for what goes wrong."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

from reconciler.cli.terminal import CommandError
from reconciler.kube.access import find_access
from reconciler.kube.client import Client, Page
from reconciler.kube.errors import (
    AccessError,
    ApiError,
    ForbiddenError,
    GoneError,
    UnauthorizedError,
    UnavailableError,
)
from reconciler.kube.resources import Selection
from reconciler.kube.transport import ClientSettings

Object = Mapping[str, object]
T = TypeVar("T")

_PAGE: Final = 500
_TRIES: Final = 3
_SETTINGS: Final = ClientSettings()


def with_cluster(
    kubeconfig: str,
    work: Callable[[Client], Awaitable[T]],
    settings: ClientSettings = _SETTINGS,
) -> T:
    """Return what `work` finds in the cluster. Raises CommandError."""

    async def run() -> T:
        async with Client(find_access(os.environ, kubeconfig=kubeconfig), settings) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except AccessError as error:
        raise CommandError(str(error)) from error
    except UnauthorizedError as error:
        raise CommandError(f"the cluster does not accept who you are: {error}") from error
    except ForbiddenError as error:
        raise CommandError(f"not permitted: {error}") from error
    except UnavailableError as error:
        raise CommandError(f"the cluster cannot be reached: {error}") from error
    except ApiError as error:
        raise CommandError(str(error)) from error


class Lister(Protocol):
    """The part of a client that lists."""

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        """Return up to `limit` objects of a consistent list."""
        ...


async def everything(client: Lister, selection: Selection) -> list[Object]:
    """Return all objects of a consistent list; begins again if that takes too long."""
    return await viewed(client, selection, lambda item: item)


async def viewed(client: Lister, selection: Selection, view: Callable[[Object], T]) -> list[T]:
    """Return the views of all objects of a consistent list, which is never held as a whole."""
    for _ in range(_TRIES):
        try:
            return await _listed(client, selection, view)
        except GoneError:
            continue
    return await _listed(client, selection, view)


async def _listed(client: Lister, selection: Selection, view: Callable[[Object], T]) -> list[T]:
    found: list[T] = []
    token = ""
    while True:
        page = await client.list_page(selection, limit=_PAGE, continue_token=token)
        found += map(view, page.items)
        token = page.continue_token
        if not token:
            return found
