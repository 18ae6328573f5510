# SPDX-License-Identifier: Apache-2.0
"""What is sent for each command."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from policies.documents.kinds import Kind
from policies.documents.source import SourceText
from reconciler.kube.errors import ConflictError, NotFoundError
from reconciler.kube.resources import Target
from reconciler.mirror.actuate import carry_out
from reconciler.mirror.documents import file_documents
from reconciler.mirror.plan import Command, Delete, Tell, Write
from reconciler.mirror.view import Acceptance, found

NOW = datetime(2031, 5, 17, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
TEXT = b"""\
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata:
  name: chat
  labels: {team: x, state.sluice.dev/source: forged}
  annotations: {note: why, state.sluice.dev/file: forged}
spec: {namespaces: {names: [chat]}, quota: {gpus: {guarantee: 0.5, ceiling: 3}}}
---
apiVersion: sluice.dev/v1alpha1
kind: PolicyTest
metadata: {name: chat}
"""
(CHAT,) = file_documents([SourceText("tenants.yaml", TEXT)])
ITEM = {"metadata": {"name": "chat", "uid": "u1", "resourceVersion": "7", "generation": 2}}


@dataclass
class Writer:
    """Keeps what is sent; `error` is what deletes answer."""

    sent: list[tuple[str, Mapping[str, object], str, bool]] = field(default_factory=list)
    deleted: list[tuple[str, str]] = field(default_factory=list)
    error: Exception | None = None

    async def apply(
        self, target: Target, body: Mapping[str, object], *, field_manager: str, force: bool = True
    ) -> Mapping[str, object]:
        self.sent.append((target.path, body, field_manager, force))
        return {}

    async def delete(self, target: Target, *, uid: str = "") -> Mapping[str, object]:
        self.deleted.append((target.path, uid))
        if self.error is not None:
            raise self.error
        return {}


async def sent(command: Command) -> tuple[str, Mapping[str, object], str, bool]:
    writer = Writer()
    await carry_out(writer, command, "7c1f", NOW)
    (call,) = writer.sent
    return call


async def test_a_new_mirror_says_what_the_file_says_and_takes_nothing_over() -> None:
    path, body, manager, force = await sent(Write(CHAT, ""))

    assert path == "/apis/sluice.dev/v1alpha1/tenants/chat"
    assert body == {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Tenant",
        "metadata": {
            "name": "chat",
            "labels": {"team": "x", "state.sluice.dev/source": "file"},
            "annotations": {
                "note": "why",
                "state.sluice.dev/file": "tenants.yaml",
                "state.sluice.dev/generation": "7c1f",
                "state.sluice.dev/digest": CHAT.digest,
            },
        },
        "spec": {
            "namespaces": {"names": ["chat"]},
            "quota": {"gpus": {"guarantee": 0.5, "ceiling": 3}},
        },
    }
    assert (manager, force) == ("sluice", False)


async def test_a_change_is_conditional_on_what_was_seen() -> None:
    _, body, _, force = await sent(Write(CHAT, "7"))

    assert body["metadata"]["resourceVersion"] == "7"  # type: ignore[index] # a map
    assert force


async def test_a_condition_is_written_beside_the_status_of_others() -> None:
    acceptance = Acceptance(True, "Served", "", "tenants.yaml", 2)

    path, body, manager, _ = await sent(Tell(found(Kind.TENANT, ITEM), acceptance))

    assert path == "/apis/sluice.dev/v1alpha1/tenants/chat/status"
    assert manager == "sluice-accepted"
    assert body["status"] == {
        "observedGeneration": 2,
        "source": "tenants.yaml",
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "reason": "Served",
                "message": "",
                "lastTransitionTime": "2031-05-17T12:00:00Z",
                "observedGeneration": 2,
            }
        ],
    }


@pytest.mark.parametrize(("before", "since"), [(True, "2031-01-01T00:00:00Z"), (False, "now")])
async def test_the_time_is_that_of_the_last_change_of_mind(before: bool, since: str) -> None:
    said = Acceptance(before, "Served", "old", "tenants.yaml", 1)
    item = replace(found(Kind.TENANT, ITEM), acceptance=said, since="2031-01-01T00:00:00Z")

    _, body, _, _ = await sent(Tell(item, Acceptance(True, "Served", "", "tenants.yaml", 2)))

    (condition,) = body["status"]["conditions"]  # type: ignore[index] # a map
    now = NOW.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert condition["lastTransitionTime"] == (now if since == "now" else since)


async def test_only_the_object_that_was_seen_is_deleted() -> None:
    writer = Writer()
    await carry_out(writer, Delete(found(Kind.TENANT, ITEM)), "7c1f", NOW)

    assert writer.deleted == [("/apis/sluice.dev/v1alpha1/tenants/chat", "u1")]


async def test_one_that_is_gone_already_is_gone() -> None:
    await carry_out(
        Writer(error=NotFoundError("gone")), Delete(found(Kind.TENANT, ITEM)), "7c1f", NOW
    )
    with pytest.raises(ConflictError):
        await carry_out(
            Writer(error=ConflictError("another")), Delete(found(Kind.TENANT, ITEM)), "7c1f", NOW
        )


def test_what_is_read_back_is_what_was_said() -> None:
    condition = {
        "type": "Accepted",
        "status": "False",
        "reason": "Invalid",
        "message": "why",
        "lastTransitionTime": "2031-01-01T00:00:00Z",
    }
    status = {
        "observedGeneration": 3,
        "source": "API",
        "conditions": [{"type": "Other", "status": "True"}, condition],
        "used": "2.5",
    }
    item = found(Kind.TENANT, {**ITEM, "status": status})

    assert item.acceptance == Acceptance(False, "Invalid", "why", "API", 3)
    assert (item.since, item.used) == ("2031-01-01T00:00:00Z", "2.5")
