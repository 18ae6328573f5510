# SPDX-License-Identifier: Apache-2.0
"""Reviews of documents in the API: who may write, what is refused in which words, and how fast."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import orjson
import pytest

from policies.documents.kinds import Kind
from policies.documents.source import SourceText
from policies.model.settings import Mode, Settings
from reconciler.kube.document_resources import API_KINDS, plural
from reconciler.kube.errors import UnavailableError
from reconciler.runtime.api_documents import to_source
from reconciler.runtime.documents import DocumentState
from reconciler.runtime.loading import Compiler
from tests.support.certificates import Pki
from tests.support.reviews import body, pod, review
from tests.support.serving import RecordingAudit, client, make_serving, policy_set, running
from tests.support.waiting import until
from webhook.document_checks import MOST_WAITING, DocumentChecks
from webhook.serving import Serving

ACCOUNT = "system:serviceaccount:sluice:sluice"
Json = dict[str, Any]
JSON_HEADERS = {"Content-Type": "application/json"}


def document(kind: str = "Tenant", name: str = "hand", **spec: Any) -> Json:
    given = spec or {"namespaces": {"names": [name]}}
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "uid": "u1"},
        "spec": given,
    }


def mirrored(name: str = "chat") -> Json:
    item = document(name=name)
    item["metadata"] |= {
        "labels": {"state.sluice.dev/source": "file"},
        "annotations": {"state.sluice.dev/file": "tenants.yaml"},
    }
    return item


FILES = (
    SourceText(
        "tenants.yaml",
        b"""
kind: Tenant
apiVersion: sluice.dev/v1alpha1
metadata: {name: chat}
spec: {namespaces: {names: [chat]}}
""",
    ),
    SourceText(
        "profiles.yaml",
        b"""
kind: SharingProfile
apiVersion: sluice.dev/v1alpha1
metadata: {name: slice-4}
spec: {mode: TimeSlice, replicas: 4}
""",
    ),
)
PLURALS = {str(kind): plural(kind) for kind in API_KINDS}


@dataclass
class Api:
    """The API's documents: what was seen of them, and what is there now."""

    seen: tuple[SourceText, ...] = ()
    now: tuple[SourceText, ...] | None = None
    is_synced: bool = True
    asked: int = 0

    def sources(self) -> tuple[SourceText, ...]:
        return self.seen

    async def fresh(self) -> tuple[SourceText, ...]:
        self.asked += 1
        if self.now is None:
            raise UnavailableError("no answer")
        return self.now


@dataclass
class Desk:
    """A webhook with these documents."""

    compiler: Compiler
    files: tuple[SourceText, ...] = FILES
    api: Api = field(default_factory=Api)
    loads: list[Sequence[SourceText]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    http: aiohttp.ClientSession | None = None
    serving: Serving | None = None

    def load(self, sources: Sequence[SourceText]) -> Any:
        self.loads.append(sources)
        self.gate.wait(10)
        return self.compiler.load(sources)

    def state(self) -> DocumentState:
        newest = (*self.files, *self.api.seen)
        return DocumentState(problems=self.compiler.load(newest).problems, newest=newest)

    async def ask(self, obj: Json | None, *, path: str = "/validate", **fields: Any) -> Json:
        item = obj or fields.get("oldObject") or {}
        group = {"group": "sluice.dev", "version": "v1alpha1"}
        resource = {**group, "resource": PLURALS[item["kind"]]}
        kind = {**group, "kind": item["kind"]}
        given = {"resource": resource, "kind": kind, "namespace": "", **fields}
        given.setdefault("name", item["metadata"].get("name", ""))
        sent = body(review(obj, **given) if obj is not None else _gone(review({}, **given)))
        return await self.post(path, sent)

    async def post(self, path: str, sent: bytes) -> Json:
        assert self.http is not None
        async with self.http.post(path, data=sent, headers=JSON_HEADERS) as response:
            assert response.status == 200
            answer: Json = orjson.loads(await response.read())["response"]
            return answer

    async def message(self, obj: Json | None, **fields: Any) -> str:
        answer = await self.ask(obj, **fields)
        return "" if answer["allowed"] else str(answer["status"]["message"])


def _gone(given: Json) -> Json:
    given["request"]["object"] = None
    return given


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
async def desk(compiler: Compiler, pki: Pki, settings: Settings) -> AsyncIterator[Desk]:
    made = Desk(compiler)
    made.gate.set()
    checks = DocumentChecks(made.load, made.state, made.api)
    policies = policy_set(settings)
    made.serving = make_serving(documents=checks, policies=lambda: policies)
    async with running(made.serving, pki) as server, client(server, pki) as session:
        made.http = session
        yield made
    made.gate.set()
    checks.close()


async def test_a_good_document_is_accepted(desk: Desk) -> None:
    answer = await desk.ask(document())

    assert answer["allowed"]
    assert "patch" not in answer


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_a_bad_one_is_refused_in_the_words_of_lint(desk: Desk, path: str) -> None:
    bad = document(namespaces={"names": ["hand"]}, cohrot="main")

    assert await desk.message(bad, path=path) == (
        'sluice: [InvalidDocument] Tenant/hand: spec.cohrot: unknown field; did you mean "cohort"?'
    )


async def test_both_passes_of_one_review_cost_one_load(desk: Desk) -> None:
    for path in ("/mutate", "/validate"):
        await desk.ask(document(), path=path)

    assert len(desk.loads) == 1


async def test_a_name_of_a_file_is_refused_with_its_place(desk: Desk) -> None:
    assert await desk.message(document(name="chat")) == (
        "sluice: [InvalidDocument] Tenant/chat: metadata.name: there is one of this name already,"
        " in tenants.yaml:4"
    )


async def test_an_update_replaces_the_object_itself(desk: Desk) -> None:
    old = document()
    desk.api.seen = (to_source(Kind.TENANT, old),)
    new = document(namespaces={"names": ["hand", "other"]})

    assert await desk.message(new, operation="UPDATE", oldObject=old) == ""


async def test_what_would_break_others_is_refused_with_their_place(desk: Desk) -> None:
    profile = document("SharingProfile", "mine", mode="TimeSlice", replicas=2)
    policy = document("GPUPolicy", "mine", rewrite={"profile": "mine"})
    desk.api.seen = (to_source(Kind.GPU_POLICY, policy), to_source(Kind.SHARING_PROFILE, profile))
    desk.api.now = desk.api.seen

    message = await desk.message(None, operation="DELETE", oldObject=profile)

    assert "[InvalidDocument] gpupolicy/mine (in the API): error: GPUPolicy/mine" in message


async def test_nobody_is_held_to_what_was_wrong_already(desk: Desk) -> None:
    desk.files = (*FILES, SourceText("bad.yaml", b"kind: Tennant\n"))

    assert await desk.message(document()) == ""


async def test_a_broken_object_can_be_mended_and_taken_away(desk: Desk) -> None:
    broken = document(namespaces={"names": ["hand"]}, cohrot="x")
    desk.api.seen = desk.api.now = (to_source(Kind.TENANT, broken),)

    assert await desk.message(document(), operation="UPDATE", oldObject=broken) == ""
    assert await desk.message(None, operation="DELETE", oldObject=broken) == ""
    worse = document(namespaces={"names": ["hand"]}, cohrot="y")
    assert "cohrot" in await desk.message(worse, operation="UPDATE", oldObject=broken)


async def test_what_was_applied_a_moment_ago_is_looked_up_before_a_refusal(desk: Desk) -> None:
    profile = document("SharingProfile", "mine", mode="TimeSlice", replicas=2)
    desk.api.now = (to_source(Kind.SHARING_PROFILE, profile),)
    policy = document("GPUPolicy", "mine", rewrite={"profile": "mine"})

    assert await desk.message(policy) == ""
    assert desk.api.asked == 1


async def test_without_an_answer_what_was_seen_decides(desk: Desk) -> None:
    policy = document("GPUPolicy", "mine", rewrite={"profile": "mine"})

    assert 'there is no profile "mine"' in await desk.message(policy)
    assert desk.api.asked == 1


async def test_a_change_of_bookkeeping_alone_is_not_looked_at(desk: Desk) -> None:
    broken = document(namespaces={"names": ["hand"]}, cohrot="x")
    noted = {**broken, "metadata": {**broken["metadata"], "annotations": {"note": "x"}}}

    assert await desk.message(noted, operation="UPDATE", oldObject=broken) == ""
    assert desk.loads == []


async def test_warnings_are_told_with_the_answer(desk: Desk) -> None:
    answer = await desk.ask(document(namespaces={"selector": {}}))

    assert answer["allowed"]
    assert any(
        text.startswith("sluice: Tenant/hand: spec.namespaces.selector: an empty selector")
        for text in answer["warnings"]
    )


async def test_a_warning_that_was_there_before_is_not_told_again(desk: Desk) -> None:
    wide = document(name="wide", namespaces={"selector": {}})
    desk.api.seen = (to_source(Kind.TENANT, wide),)

    answer = await desk.ask(document())

    assert not any("Tenant/wide" in text for text in answer.get("warnings", ()))


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE"])
async def test_a_mirror_is_sluices_alone(desk: Desk, operation: str) -> None:
    new = None if operation == "DELETE" else {**mirrored(), "spec": {}}

    message = await desk.message(new, operation=operation, oldObject=mirrored())
    assert message == (
        "sluice: [MirroredDocument] Tenant/chat mirrors what tenants.yaml says: change it there"
    )
    by_sluice = {"userInfo": {"username": ACCOUNT}}
    assert not await desk.message(new, operation=operation, oldObject=mirrored(), **by_sluice)


async def test_nobody_else_makes_or_unmakes_a_mirror(desk: Desk) -> None:
    plain = document()
    marked = mirrored("hand")

    assert "[OwnedKey]" in await desk.message(marked)
    assert "[OwnedKey]" in await desk.message(marked, operation="UPDATE", oldObject=plain)
    assert "[MirroredDocument]" in await desk.message(plain, operation="UPDATE", oldObject=marked)


async def test_nobody_else_writes_a_status(desk: Desk) -> None:
    item = {**document(), "status": {"used": "0"}}
    update = {"operation": "UPDATE", "oldObject": document(), "subResource": "status"}

    assert "only Sluice writes the status of a Tenant" in await desk.message(item, **update)
    assert not await desk.message(item, **update, userInfo={"username": ACCOUNT})


@pytest.mark.parametrize(
    ("used", "warned"), [("27.75", True), ("0.125", True), ("0", False), (None, False)]
)
async def test_a_tenant_in_use_goes_with_a_warning(
    desk: Desk, used: str | None, warned: bool
) -> None:
    item = {**document(), "status": {"used": used} if used else {}}
    desk.api.seen = (to_source(Kind.TENANT, item),)

    answer = await desk.ask(None, operation="DELETE", oldObject=item)

    assert answer["allowed"]
    told = [text for text in answer.get("warnings", ()) if "are counted until they end" in text]
    assert len(told) == warned
    assert all(f"tenant hand uses {used} GPUs" in text for text in told)


async def test_a_generated_name_is_left_to_the_second_pass(desk: Desk) -> None:
    item = document()
    item["metadata"] = {"generateName": "hand-"}

    assert await desk.message(item, path="/mutate", name="") == ""
    assert desk.loads == []


class TestObserving:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(mode=Mode.OBSERVE)

    async def test_documents_are_refused_in_mode_observe_too(self, desk: Desk) -> None:
        assert await desk.message(document(namespaces={"names": ["hand"]}, cohrot="x"))


@pytest.mark.parametrize("missing", ["api", "files"])
async def test_before_all_documents_were_read_nothing_is_accepted(desk: Desk, missing: str) -> None:
    if missing == "api":
        desk.api.is_synced = False
    else:
        desk.files = ()

    assert "not known yet: try again" in await desk.message(document())


async def test_a_dry_run_gets_the_same_answer_and_a_marked_audit_line(desk: Desk) -> None:
    bad = document(namespaces={"names": ["hand"]}, cohrot="x")
    assert await desk.message(bad) == await desk.message(bad, dryRun=True)

    assert desk.serving is not None
    entries = cast("RecordingAudit", desk.serving.audit).entries
    await until(lambda: len(entries) == 2)
    assert [entry.request.dry_run for entry in entries] == [False, True]
    assert [entry.allowed for entry in entries] == [False, False]


async def test_pods_are_answered_while_a_document_is_being_checked(desk: Desk) -> None:
    desk.gate.clear()
    checking = asyncio.create_task(desk.ask(document()))
    await until(lambda: len(desk.loads) == 1)
    assert desk.http is not None

    async with desk.http.post(
        "/validate", data=body(review(pod())), headers=JSON_HEADERS
    ) as response:
        assert orjson.loads(await response.read())["response"]["allowed"]

    assert not checking.done()
    desk.gate.set()
    assert (await checking)["allowed"]


async def test_one_load_runs_at_a_time_and_only_so_many_wait(desk: Desk) -> None:
    desk.gate.clear()
    asked = [
        asyncio.create_task(desk.message(document(name=f"t{number}")))
        for number in range(MOST_WAITING)
    ]
    assert desk.serving is not None
    checks = desk.serving.documents
    assert checks is not None
    await until(lambda: checks.is_busy)

    assert "too many documents are being checked" in await desk.message(document(name="more"))
    assert len(desk.loads) == 1
    desk.gate.set()
    assert await asyncio.gather(*asked) == [""] * MOST_WAITING


async def test_a_check_that_takes_too_long_is_refused_in_time(desk: Desk) -> None:
    desk.gate.clear()

    message = await desk.message(document(), path="/validate?timeout=1s")

    assert "[InternalError] checking it took too long: try again" in message


async def test_a_fault_of_ours_refuses_and_names_the_review(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> tuple[SourceText, ...]:
        raise RuntimeError("a bug")

    desk.api.sources = broken  # type: ignore[method-assign] # the fault that is tested

    assert "Sluice failed to decide" in await desk.message(document())
    assert "a bug" in caplog.text


async def test_a_pod_that_speaks_of_the_group_is_a_pod(desk: Desk) -> None:
    item = pod()
    item["metadata"]["labels"] = {"x": "sluice.dev"}

    assert (await desk.post("/validate", body(review(item))))["allowed"]
    assert desk.loads == []
