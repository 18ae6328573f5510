# SPDX-License-Identifier: Apache-2.0
"""Tests here run on the loop that the webhook runs on, with certificates of their own."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import uvloop

from tests.support.certificates import Pki, make_pki


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return make_pki(tmp_path)
