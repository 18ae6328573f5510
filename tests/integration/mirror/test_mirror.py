# SPDX-License-Identifier: Apache-2.0
"""Documents of files show as custom resources, with the permissions of Sluice's own account."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from policies.documents.kinds import Kind
from reconciler.kube.document_resources import resource_of
from reconciler.kube.resources import Target
from tests.controlplane import ControlPlane
from tests.integration.mirror.conftest import Workplace, acceptance, tenant

_POLICY = """\
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: plain}
spec: {rewrite: {profile: whole}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: whole}
spec: {mode: Exclusive}
"""


def by_hand(name: str, **spec: Any) -> Mapping[str, object]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": name},
        "spec": {"namespaces": {"names": [name]}, **spec},
    }


def says(found: Any, **fields: object) -> bool:
    """Tell whether a spec has these fields; defaults may stand beside them."""
    return all(found["spec"].get(field) == value for field, value in fields.items())


async def create(work: Workplace, item: Mapping[str, object]) -> None:
    await work.admin.create(Target(resource_of(Kind.TENANT)), item)


async def report(work: Workplace, name: str, used: str) -> None:
    """Say what a tenant uses, as the quota controller does."""
    body = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": name},
        "status": {"used": used},
    }
    target = Target(resource_of(Kind.TENANT), name, subresource="status")
    await work.admin.apply(target, body, field_manager="sluice-status")


async def test_a_document_appears_with_where_it_comes_from(work: Workplace) -> None:
    status = await work.accepted(Kind.TENANT, "chat", reason="Served")

    found = await work.find(Kind.TENANT, "chat")
    metadata = found["metadata"]
    assert metadata["labels"] == {"team": "x", "state.sluice.dev/source": "file"}
    assert metadata["annotations"]["state.sluice.dev/file"] == "tenants.yaml"
    current = work.documents.current()
    assert current is not None
    assert metadata["annotations"]["state.sluice.dev/generation"] == current.generation
    assert says(found, namespaces={"names": ["chat"]})
    assert status["source"] == "tenants.yaml"
    assert status["observedGeneration"] == metadata["generation"]
    assert acceptance(found)["status"] == "True"
    assert {entry["manager"] for entry in metadata["managedFields"]} == {
        "sluice",
        "sluice-accepted",
    }


async def test_documents_of_every_kind_and_folder_appear(work: Workplace) -> None:
    work.write("team/policies.yaml", _POLICY)

    policy = await work.until(Kind.GPU_POLICY, "plain", bool, "the policy")
    await work.until(Kind.SHARING_PROFILE, "whole", bool, "the profile")

    assert policy["metadata"]["annotations"]["state.sluice.dev/file"] == "team/policies.yaml"
    # The API server has added the defaults, which mean the same.
    assert says(policy, rewrite={"profile": "whole"}, order=1000, exclusive=False)


async def test_a_change_and_what_was_left_out_show(work: Workplace) -> None:
    work.write("tenants.yaml", tenant("chat", "quota: {gpus: {guarantee: 1.5, ceiling: 2}}"))
    await work.until(
        Kind.TENANT,
        "chat",
        lambda found: found and found["spec"].get("quota") == QUOTA,
        "the quota",
    )

    work.write("tenants.yaml", tenant("chat", "cohort: main"))
    found = await work.until(
        Kind.TENANT, "chat", lambda item: "quota" not in item["spec"], "no quota"
    )

    assert says(found, namespaces={"names": ["chat"]}, cohort="main")
    generation = found["metadata"]["generation"]
    await work.until(
        Kind.TENANT,
        "chat",
        lambda item: item["status"]["observedGeneration"] == generation,
        "the status of the change",
    )


QUOTA = {"gpus": {"guarantee": 1.5, "ceiling": 2}}


async def test_a_mirror_goes_with_its_document(work: Workplace) -> None:
    work.write("more.yaml", tenant("more"))
    await work.until(Kind.TENANT, "more", bool, "the mirror")

    (work.policies / "more.yaml").unlink()

    await work.until(Kind.TENANT, "more", lambda found: not found, "its end")
    assert await work.find(Kind.TENANT, "chat")


async def test_a_tenant_in_use_is_shown_until_its_pods_have_ended(work: Workplace) -> None:
    work.write("more.yaml", tenant("more"))
    await work.accepted(Kind.TENANT, "more", reason="Served")
    await report(work, "more", "2.5")

    (work.policies / "more.yaml").unlink()
    await work.accepted(Kind.TENANT, "more", reason="DocumentGone", text="use 2.5 GPUs")
    await report(work, "more", "0")

    await work.until(Kind.TENANT, "more", lambda found: not found, "its end")


async def test_nothing_is_written_when_nothing_changes(work: Workplace) -> None:
    await work.accepted(Kind.TENANT, "chat", reason="Served")
    before = await work.find(Kind.TENANT, "chat")

    work.write("more.yaml", tenant("more"))
    await work.accepted(Kind.TENANT, "more", reason="Served")

    after = await work.find(Kind.TENANT, "chat")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_a_broken_file_shows_on_its_mirror_which_stays_as_it_was(work: Workplace) -> None:
    await work.accepted(Kind.TENANT, "chat", reason="Served")

    work.write("tenants.yaml", tenant("chat", "cohrot: main"))
    status = await work.accepted(Kind.TENANT, "chat", reason="Invalid", text="tenants.yaml:8:3")

    assert 'did you mean "cohort"' in status["conditions"][0]["message"]
    assert status["conditions"][0]["status"] == "False"
    assert "cohort" not in (await work.find(Kind.TENANT, "chat"))["spec"]
    work.write("tenants.yaml", tenant("chat", "cohort: main"))
    await work.accepted(Kind.TENANT, "chat", reason="Served")


async def test_an_object_of_people_is_a_document_and_is_left_as_it_is(work: Workplace) -> None:
    await create(work, by_hand("hand"))

    status = await work.accepted(Kind.TENANT, "hand", reason="Served")

    assert status["source"] == "API"
    current = work.documents.current()
    assert current is not None
    assert set(current.tenants) == {"chat", "hand"}
    found = await work.find(Kind.TENANT, "hand")
    assert "labels" not in found["metadata"]
    assert says(found, namespaces={"names": ["hand"]})


async def test_a_broken_object_shows_and_keeps_the_old_set(work: Workplace) -> None:
    await work.accepted(Kind.TENANT, "chat", reason="Served")
    before = work.documents.current()
    await create(work, by_hand("hand", cohrot="main"))

    status = await work.accepted(Kind.TENANT, "hand", reason="Invalid")

    assert status["conditions"][0]["message"] == (
        "tenant/hand (in the API): error: Tenant/hand: spec.cohrot: unknown field;"
        ' did you mean "cohort"?'
    )
    assert work.documents.current() is before
    await create(work, by_hand("other"))
    await work.accepted(Kind.TENANT, "other", reason="OthersInvalid", text="spec.cohrot")


async def test_a_name_in_a_file_and_by_hand_is_told_by_both(work: Workplace) -> None:
    await create(work, by_hand("twice", cohort="mine"))
    await work.accepted(Kind.TENANT, "twice", reason="Served")

    work.write("more.yaml", tenant("twice"))
    await work.accepted(
        Kind.TENANT, "twice", reason="Invalid", text="one of this name already, in more.yaml:4"
    )

    told = [str(problem) for problem in work.documents.state.problems]
    assert any(
        text.startswith("more.yaml:4:9: error: Tenant/twice: metadata.name: ")
        and text.endswith("there is one of this name too, as tenant/twice (in the API)")
        for text in told
    )
    found = await work.find(Kind.TENANT, "twice")
    assert found["spec"]["cohort"] == "mine"
    assert "labels" not in found["metadata"]
    await work.admin.delete(Target(resource_of(Kind.TENANT), "twice"))
    mirror = await work.until(
        Kind.TENANT, "twice", lambda item: item.get("metadata", {}).get("labels"), "the mirror"
    )
    assert mirror["metadata"]["annotations"]["state.sluice.dev/file"] == "more.yaml"


async def test_a_kind_that_appears_later_is_taken_up(
    work: Workplace, control_plane: ControlPlane
) -> None:
    await work.accepted(Kind.TENANT, "chat", reason="Served")
    definition = json.loads(
        control_plane.kubectl("get", "crd/gpupolicies.sluice.dev", "--output=json").stdout
    )
    del definition["status"]
    for field in ("resourceVersion", "uid", "managedFields", "creationTimestamp", "generation"):
        definition["metadata"].pop(field, None)

    await control_plane.kubectl_async("delete", "crd/gpupolicies.sluice.dev")
    work.write("policies.yaml", _POLICY)
    await work.until(Kind.SHARING_PROFILE, "whole", bool, "the profile, whose kind is there")
    await control_plane.kubectl_async("create", "--filename=-", stdin=definition)

    await work.until(Kind.GPU_POLICY, "plain", bool, "the policy, whose kind has come")


async def test_many_documents_at_once_are_all_mirrored(work: Workplace) -> None:
    names = [f"many-{number}" for number in range(100)]
    work.write("many.yaml", "---\n".join(map(tenant, names)))

    async with asyncio.timeout(30):
        for name in names:
            await work.accepted(Kind.TENANT, name, reason="Served")


async def test_any_text_is_mirrored_as_it_is(work: Workplace) -> None:
    text = "for 🦙 — “quoted”: a # no comment"
    quoted = json.dumps(text, ensure_ascii=False)
    work.write("text.yaml", tenant("text", f"description: {quoted}"))

    found = await work.until(Kind.TENANT, "text", bool, "the mirror")

    assert found["spec"]["description"] == text


async def test_any_text_of_an_object_is_read_as_it_is(work: Workplace) -> None:
    await create(work, by_hand("text", description="🦙\u2028\x85\x7f\ufeff 'a': \"b\"\ttab\n- x"))

    await work.accepted(Kind.TENANT, "text", reason="Served")
