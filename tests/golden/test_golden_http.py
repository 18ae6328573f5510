# SPDX-License-Identifier: Apache-2.0
"""The golden cases over HTTP and TLS: the webhook tells the API server what the core decided."""

import json
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from policies.decide import decide
from tests.support.certificates import make_pki
from tests.support.golden import Case, Exchange, folders, load_case, readable_patch, visible
from tests.support.serving import client, make_serving, running

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Webhook:
    """A running webhook that answers by the policies and facts of the case that is on."""

    session: aiohttp.ClientSession
    case: Case | None = None

    async def answer(self, case: Case, exchange: Exchange) -> Any:
        """Post a review of a case and return the body of the answer."""
        self.case = case
        headers = {"Content-Type": "application/json"}
        async with self.session.post(
            f"{exchange.path}?timeout=5s", data=exchange.review, headers=headers
        ) as response:
            assert response.status == 200, await response.text()
            return orjson.loads(await response.read())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def webhook(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Webhook]:
    pki = make_pki(tmp_path_factory.mktemp("golden"))
    on: list[Webhook] = []
    serving = make_serving(
        policies=lambda: on[0].case and on[0].case.policies,
        facts=lambda: on[0].case and on[0].case.facts,
        decide=decide,
    )
    async with running(serving, pki) as server, client(server, pki) as session:
        on.append(Webhook(session))
        yield on[0]


@pytest.mark.parametrize("folder", folders(), ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_the_webhook_answers_as_the_case_says(webhook: Webhook, folder: Path) -> None:
    case = load_case(folder)
    for document, expected in zip(case.exchanges, case.expected, strict=True):
        for exchange in document:
            answer = await webhook.answer(case, exchange)
            told = _told(answer, case.policies.generation)
            assert told == visible(expected[exchange.step]), exchange.step
            _assert_well_formed(answer, orjson.loads(exchange.review)["request"]["uid"])


def _told(answer: Any, generation: str) -> Any:
    """Return what the API server reads in an answer, in the form of the golden files."""
    response = answer["response"]
    patch = readable_patch(orjson.loads(b64decode(response.get("patch", "W10="), validate=True)))
    told = {
        "allowed": response["allowed"],
        "message": response.get("status", {}).get("message", ""),
        "warnings": response.get("warnings", []),
        "patch": patch,
    }
    return json.loads(json.dumps(told).replace(generation, "<generation>"))


def _assert_well_formed(answer: Any, uid: str) -> None:
    """Check what makes the API server answer 500 where it is wrong."""
    response = answer["response"]
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert response["uid"] == uid
    assert response.get("patchType") == ("JSONPatch" if "patch" in response else None)
    assert response["allowed"] or response["status"]["code"] == 403
    assert response["allowed"] != ("status" in response)
