# SPDX-License-Identifier: Apache-2.0
"""Documents that people keep in the API: checked at apply as lint checks them, and decided by."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from policies.documents.source import SourceText
from reconciler.runtime.document_files import read_documents
from tests.controlplane import ControlPlane
from tests.integration.sluice.conftest import MakeTeam
from tests.integration.sluice.objects import SHARED, Json, gpus, pod
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.running import Running, compiler, generation_of
from tests.integration.sluice.team import Answer, Team, until

_GROUP = "/apis/sluice.dev/v1alpha1"
_KINDS = ("exemptions", "gpupolicies", "tenants", "sharingprofiles", "gpupools")


class Desk:
    """The API as a platform engineer uses it: kubectl with documents, whatever comes of it."""

    def __init__(self, sluice: Running, control_plane: ControlPlane, rest: Rest) -> None:
        self.sluice = sluice
        self.rest = rest
        self._anywhere = Team(control_plane, rest, "default")

    def apply(self, *documents: Json, dry_run: bool = False) -> Answer:
        return self._anywhere.apply(*documents, dry_run=dry_run)

    def kubectl(self, *arguments: str) -> Answer:
        return self._anywhere.kubectl(*arguments)

    def accepted(self, name: str) -> str:
        """Return what the condition `Accepted` of a tenant says."""
        path = '{.status.conditions[?(@.type=="Accepted")].message}'
        return self.kubectl("get", "tenant", name, f"--output=jsonpath={path}").out

    def keep(self, *documents: Json) -> None:
        """Apply what must be accepted, and wait until Sluice decides by it."""
        self._anywhere.create(*documents)
        until(self.is_followed, "the documents of the API being served")

    def is_followed(self) -> bool:
        return not self.sluice.is_broken and self.sluice.serves(self.generation())

    def generation(self) -> str:
        """Return the generation of files and API together, by a load of our own."""
        sources = [*read_documents(self.sluice.policies).sources, *self._texts()]
        loaded: Any = compiler().load(sources)
        return str(loaded.policy_set.generation)

    def _texts(self) -> Iterator[Any]:
        for kind in _KINDS:
            for item in self.rest.get(f"{_GROUP}/{kind}")["items"]:
                labels = item["metadata"].get("labels", {})
                if "state.sluice.dev/source" in labels:
                    continue
                content = {key: item[key] for key in ("apiVersion", "kind", "spec")}
                metadata = {"name": item["metadata"]["name"]} | (
                    {"labels": labels} if labels else {}
                )
                text = json.dumps({**content, "metadata": metadata})
                yield SourceText(f"{kind}-{metadata['name']}.json", text.encode())

    def clear(self) -> None:
        """Take everything away that is kept by hand."""
        for kind in ("exemptions", "gpupolicies", "tenants", "sharingprofiles", "gpupools"):
            for item in self.rest.get(f"{_GROUP}/{kind}")["items"]:
                if "state.sluice.dev/source" not in item["metadata"].get("labels", {}):
                    self.rest.request("DELETE", f"{_GROUP}/{kind}/{item['metadata']['name']}")
        until(
            lambda: self.sluice.serves(generation_of(self.sluice.policies)),
            "the files alone being served",
        )


@pytest.fixture
def desk(sluice: Running, control_plane: ControlPlane, rest: Rest) -> Iterator[Desk]:
    sluice.check()
    opened = Desk(sluice, control_plane, rest)
    yield opened
    opened.clear()


def document(kind: str, name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def tenant(name: str, **spec: Any) -> Json:
    selector = {"matchLabels": {"tenant": name}}
    return document("Tenant", name, **{"namespaces": {"selector": selector}, **spec})


def quarters(name: str, *tenants: str, profile: str = "slice-4") -> Json:
    match = {"tenants": list(tenants)}
    return document("GPUPolicy", name, order=2000, match=match, rewrite={"profile": profile})


def fresh(name: str) -> str:
    return f"{name}-{secrets.token_hex(3)}"


def test_pods_of_a_tenant_that_is_kept_in_the_api_are_decided_on(
    desk: Desk, make_team: MakeTeam
) -> None:
    name = fresh("hand")
    desk.keep(tenant(name), quarters(f"{name}-quarters", name))
    team = make_team(name)

    answer = team.apply(pod())

    assert answer.ok, answer.error
    (warning,) = answer.warnings
    assert warning.endswith(f"by policy {name}-quarters")
    assert gpus(team.running()) == {"main": {SHARED: "1"}}


def test_a_change_and_an_end_of_a_document_take_effect(desk: Desk, make_team: MakeTeam) -> None:
    name = fresh("hand")
    desk.keep(tenant(name), quarters(f"{name}-quarters", name))
    desk.keep(quarters(f"{name}-quarters", name, profile="whole"))
    team = make_team(name)
    assert gpus({"spec": json.loads(team.kubectl(*DRY, stdin=pod()).out)["spec"]}) == {
        "main": {"nvidia.com/gpu": "1"}
    }

    assert desk.kubectl("delete", "gpupolicy", f"{name}-quarters").ok
    until(desk.is_followed, "the policy's end")

    assert "[NoPolicy]" in team.apply(pod()).error


DRY = ("create", "--dry-run=server", "--output=json", "--filename=-")

BAD: list[tuple[Json, str]] = [
    (
        tenant("bad", cohrot="main"),
        'Tenant/bad: spec.cohrot: unknown field; did you mean "cohort"?',
    ),
    (
        tenant("bad", quota={"gpus": {"gaurantee": 1}}),
        'Tenant/bad: spec.quota.gpus.gaurantee: unknown field; did you mean "guarantee"?',
    ),
    (
        tenant("bad", quota={"gpus": {"guarantee": 3, "ceiling": 2}}),
        "Tenant/bad: spec.quota.gpus.guarantee: a guarantee of 3 is more than the ceiling 2",
    ),
    (
        tenant("bad", quota={"gpus": {"ceiling": 0.0005}}),
        "Tenant/bad: spec.quota.gpus.ceiling: ",
    ),
    (tenant("bad", quota={"gpus": {"ceiling": "two"}}), "Tenant/bad: spec.quota.gpus.ceiling: "),
    (document("Tenant", "bad"), "Tenant/bad: spec.namespaces: is missing"),
    (
        quarters("bad", "team-a", profile="slice-5"),
        'GPUPolicy/bad: spec.rewrite.profile: there is no profile "slice-5"',
    ),
    (
        document(
            "GPUPolicy",
            "bad",
            validate=[{"name": "x", "expression": "gpu.device < 1", "message": "m"}],
        ),
        "GPUPolicy/bad: spec.validate[0].expression: ",
    ),
    (document("SharingProfile", "bad", mode="MIG"), "SharingProfile/bad: spec"),
]


@pytest.mark.parametrize(("bad", "words"), BAD, ids=lambda value: str(value)[:60])
def test_a_bad_document_is_refused_in_the_words_of_lint(desk: Desk, bad: Json, words: str) -> None:
    source = _as_file(bad)
    linted = [str(p).partition("error: ")[2] for p in compiler().load(source).problems]

    for dry_run in (True, False):
        answer = desk.apply(bad, dry_run=dry_run)

        assert not answer.ok
        assert "denied the request: sluice: [InvalidDocument] " in answer.error
        assert words in answer.error
    told = answer.error.partition("[InvalidDocument] ")[2].partition("; [InvalidDocument]")[0]
    assert told in linted or words.startswith("GPUPolicy")


def _as_file(bad: Json) -> list[Any]:
    return [SourceText("bad.json", json.dumps(bad).encode())]


def test_all_errors_of_a_document_are_told_at_once(desk: Desk) -> None:
    answer = desk.apply(tenant("bad", cohrot="x", profiles="whole"))

    assert "spec.cohrot" in answer.error
    assert "spec.profiles" in answer.error


def test_a_set_that_is_applied_in_order_at_once_is_accepted(desk: Desk) -> None:
    """Each refers to the one before, which the watch may not have brought yet."""
    for _ in range(5):
        name = fresh("burst")
        profile = document("SharingProfile", name, mode="TimeSlice", replicas=3)
        desk.keep(profile, tenant(name), quarters(name, name, profile=name))


def test_what_others_need_cannot_go(desk: Desk) -> None:
    name = fresh("needed")
    profile = document("SharingProfile", name, mode="TimeSlice", replicas=3)
    desk.keep(profile, tenant(name), quarters(name, name, profile=name))

    answer = desk.kubectl("delete", "sharingprofile", name)

    assert not answer.ok
    assert f'there is no profile "{name}"' in answer.error
    assert desk.kubectl("delete", "gpupolicy", name).ok
    assert desk.kubectl("delete", "sharingprofile", name).ok


def test_a_name_that_stands_in_a_file_is_refused(desk: Desk) -> None:
    answer = desk.apply(tenant("team-a"))

    # Until its mirror is there it would be a second one, then a change of the mirror.
    second = "Tenant/team-a: metadata.name: there is one of this name already, in tenants.yaml:"
    change = "Tenant/team-a mirrors what tenants.yaml says: change it there"
    assert not answer.ok
    assert second in answer.error or change in answer.error


def test_warnings_of_lint_are_warnings_of_kubectl(desk: Desk) -> None:
    answer = desk.apply(tenant(fresh("wide"), namespaces={"selector": {}}), dry_run=True)

    assert answer.ok, answer.error
    assert any("an empty selector selects every namespace" in text for text in answer.warnings)


def test_what_sluice_writes_nobody_else_writes(desk: Desk) -> None:
    name = fresh("own")
    mirror = tenant(name)
    mirror["metadata"]["labels"] = {"state.sluice.dev/source": "file"}
    assert "[OwnedKey]" in desk.apply(mirror).error
    desk.keep(tenant(name))

    patch = json.dumps({"status": {"used": "3"}})
    answer = desk.kubectl(
        *("patch", "tenant", name, "--subresource=status", "--type=merge", f"--patch={patch}")
    )

    assert "only Sluice writes the status of a Tenant" in answer.error
    label = desk.kubectl("label", "tenant", name, "state.sluice.dev/source=file")
    assert "[OwnedKey]" in label.error


def test_notes_and_labels_of_people_are_theirs(desk: Desk) -> None:
    name = fresh("noted")
    desk.keep(tenant(name))

    assert desk.kubectl("annotate", "tenant", name, f"example.com/note={'x' * 5000}").ok
    assert desk.kubectl("label", "tenant", name, "team=x").ok
    until(desk.is_followed, "the label being seen by policies")


def _as_sluice(desk: Desk, *arguments: str, stdin: Json | None = None) -> Answer:
    team = desk._anywhere
    kubeconfig = f"--kubeconfig={desk.sluice.installed.kubeconfig}"
    return team.kubectl(*arguments, kubeconfig, stdin=stdin)


@pytest.fixture
def mirrored(desk: Desk) -> Iterator[str]:
    """The name of a Tenant in a file of its name, and mirrored; both go with the test."""
    name = fresh("mirrored")
    file = desk.sluice.policies / f"{name}.yaml"
    desk.sluice.write(file.name, json.dumps(tenant(name)))
    try:
        until(lambda: desk.rest.exists(f"{_GROUP}/tenants/{name}"), "its mirror being made")
        yield name
    finally:
        file.unlink()
        until(lambda: not desk.rest.exists(f"{_GROUP}/tenants/{name}"), "its mirror being gone")


@pytest.mark.parametrize(
    "change",
    [
        ("patch", "--type=merge", '--patch={"spec":{"cohort":"other"}}'),
        ("label", "state.sluice.dev/source-"),
        ("annotate", "note=mine"),
        ("delete",),
    ],
    ids=lambda change: str(change[0]),
)
def test_a_mirror_is_changed_in_its_file(
    desk: Desk, mirrored: str, change: tuple[str, ...]
) -> None:
    answer = desk.kubectl(change[0], "tenant", mirrored, *change[1:])

    assert not answer.ok
    says = f"[MirroredDocument] Tenant/{mirrored} mirrors what {mirrored}.yaml says"
    assert says in answer.error


def test_a_mirror_is_no_document_of_its_own(desk: Desk, mirrored: str) -> None:
    assert desk.rest.exists(f"{_GROUP}/tenants/{mirrored}")
    assert desk.sluice.serves(generation_of(desk.sluice.policies))


def test_a_tenant_that_still_uses_gpus_goes_with_a_warning(desk: Desk) -> None:
    name = fresh("leaving")
    desk.keep(tenant(name))
    status = {**tenant(name), "status": {"used": "27.75"}}
    del status["spec"]

    def warnings() -> list[str]:
        # The leader soon writes what is true again.
        command = ("apply", "--server-side", "--force-conflicts", "--subresource=status")
        answer = _as_sluice(desk, *command, "--filename=-", stdin=status)
        assert answer.ok, answer.error
        gone = desk.kubectl("delete", "tenant", name, "--dry-run=server")
        assert gone.ok
        return [text for text in gone.warnings if text.startswith("sluice: ")]

    (warning,) = until(warnings, "a warning while the status says so")
    assert warning.startswith(f"sluice: tenant {name} uses 27.75 GPUs: its pods run on and")
    assert desk.kubectl("delete", "tenant", name).ok


def test_each_review_of_a_document_is_audited(desk: Desk) -> None:
    desk.apply(tenant("audited", cohrot="x"))

    (line, *_) = desk.sluice.audited(None, lambda entry: entry["name"] == "audited")

    assert line["resource"] == "tenants.sluice.dev"
    assert line["reasons"] == ["InvalidDocument"]
    assert line["allowed"] is False


def test_a_name_that_a_file_takes_as_well_is_told_at_both(desk: Desk) -> None:
    name = fresh("twice")
    desk.keep(tenant(name))
    generation = desk.generation()
    file = desk.sluice.policies / "twice.yaml"
    desk.sluice.write(file.name, json.dumps(tenant(name)))
    try:
        until(lambda: desk.sluice.is_broken, "the metric telling of it")
        message = desk.sluice.condition("documents-valid")["message"]
        assert f"tenant/{name} (in the API): error: Tenant/{name}: metadata.name: " in message
        assert f"there is one of this name too, as tenant/{name} (in the API)" in message
        assert desk.sluice.serves(generation)
        until(lambda: "twice.yaml" in desk.accepted(name), "the object telling of it")
    finally:
        file.unlink()
    until(desk.is_followed, "the good documents being served again")
    assert desk.kubectl("delete", "tenant", name).ok
