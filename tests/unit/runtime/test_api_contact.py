# SPDX-License-Identifier: Apache-2.0
"""Whether the API server answers, by a clock of the test."""

import asyncio
import logging

import pytest

from reconciler.kube.errors import UnavailableError
from reconciler.runtime.api_contact import ApiContact


class Server:
    """Answers, unless it is down."""

    def __init__(self) -> None:
        self.is_down = False

    async def server_version(self) -> str:
        if self.is_down:
            raise UnavailableError("connection refused")
        return "v1.37.2"


class Rounds:
    """Time that passes only as it is slept, and ends after so many rounds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.left = 0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.left -= 1
        if not self.left:
            raise asyncio.CancelledError

    async def run(self, contact: ApiContact, rounds: int) -> None:
        self.left = rounds
        with pytest.raises(asyncio.CancelledError):
            await contact.run()


async def test_it_holds_once_answered_and_through_a_restart_of_the_server() -> None:
    server, time = Server(), Rounds()
    contact = ApiContact(server, lambda: time.now, time.sleep)
    assert not contact.condition().ok
    await time.run(contact, 1)
    assert contact.condition().ok
    server.is_down = True
    await time.run(contact, 4)
    assert contact.condition().ok


async def test_it_fails_after_half_a_minute_of_silence_and_says_why() -> None:
    server, time = Server(), Rounds()
    contact = ApiContact(server, lambda: time.now, time.sleep)
    await time.run(contact, 1)
    server.is_down = True
    await time.run(contact, 6)
    condition = contact.condition()
    assert (condition.ok, condition.required) == (False, True)
    assert condition.message == "the API server has not answered for 35 s: connection refused"


async def test_the_same_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    server, time = Server(), Rounds()
    server.is_down = True
    contact = ApiContact(server, lambda: time.now, time.sleep)
    with caplog.at_level(logging.WARNING):
        await time.run(contact, 5)
    assert len(caplog.records) == 1
    assert contact.condition().message == "connection refused"
