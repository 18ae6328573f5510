# SPDX-License-Identifier: Apache-2.0
"""Goes on with what past leaders have observed of idle quota, before anything is decided by it."""

import asyncio
import logging
from typing import Final, Protocol

from policies.quota.state import QuotaState
from reconciler.kube.client import Page
from reconciler.kube.errors import ApiError, GoneError, NotFoundError
from reconciler.kube.resources import Selection
from reconciler.tenants.actuate import TENANTS
from reconciler.tenants.view import inherit

_LOG: Final = logging.getLogger(__name__)
_PAGE: Final = 500
_SECONDS: Final = 10.0


class Lister(Protocol):
    """The part of a client that is needed."""

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        """Return a page of a consistent list."""
        ...


async def inherit_idleness(lister: Lister, state: QuotaState) -> None:
    """Read the idle histories from the tenants' statuses, for at most ten seconds.

    What cannot be read is unknown, so that nothing of it is lent until it was observed anew.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            await _inherit(lister, state)
    except NotFoundError:
        return  # the kinds of documents are not installed
    except (ApiError, TimeoutError) as error:
        _LOG.warning("nothing is lent for a while, as no status can be read: %s", error)


async def _inherit(lister: Lister, state: QuotaState) -> None:
    token = ""
    while True:
        try:
            page = await lister.list_page(Selection(TENANTS), limit=_PAGE, continue_token=token)
        except GoneError:
            if not token:
                raise
            token = ""
            continue
        for item in page.items:
            inherit(state, item)
        token = page.continue_token
        if not token:
            return
