# SPDX-License-Identifier: Apache-2.0
"""What only all documents together show: clashes, missing names, and what has no effect."""

import pytest

from policies.documents.problems import Severity
from tests.unit.documents.loading import (
    COMPLETE,
    POLICY,
    PROFILE,
    TENANT,
    Loader,
    document,
    errors,
    lines,
    served,
)

SETTINGS = document("Settings", "cluster", "mode: Observe")


@pytest.mark.parametrize("text", [TENANT, PROFILE, POLICY, SETTINGS])
def test_two_documents_of_a_kind_cannot_have_one_name(load_texts: Loader, text: str) -> None:
    found = errors(load_texts(COMPLETE, SETTINGS, text, text))

    clashes = [line for line in found if "there is one of this name already, in " in line]
    assert [line.split(":")[0] for line in clashes][-1] == "d.yaml"
    assert clashes[-1].split(": ")[3] == "metadata.name"


def test_documents_of_different_kinds_may_have_one_name(load_texts: Loader) -> None:
    tenant = TENANT.replace("name: chat", "name: no-raw-gpu")

    assert "no-raw-gpu" in served(load_texts(COMPLETE.replace(TENANT, tenant))).tenants


def test_settings_have_one_name(load_texts: Loader) -> None:
    found = errors(load_texts(document("Settings", "main", "mode: Observe")))

    assert found == [
        'a.yaml:3:18: error: Settings/main: metadata.name: must be "cluster", is "main"'
    ]


def test_two_tenants_cannot_claim_a_namespace_by_name(load_texts: Loader) -> None:
    other = document("Tenant", "other", "namespaces: {names: [x, chat]}")
    found = errors(load_texts(COMPLETE, other))

    assert found == [
        (
            "b.yaml:5:27: error: Tenant/other: spec.namespaces.names[1]: "
            'namespace "chat" is tenant chat\'s already, in a.yaml:3'
        )
    ]


def test_tenants_are_found_by_the_namespaces_that_they_name(load_texts: Loader) -> None:
    other = document("Tenant", "other", "namespaces: {names: [x, y]}")
    found = served(load_texts(COMPLETE, other)).tenant_by_namespace

    assert {name: tenant.name for name, tenant in found.items()} == {
        "chat": "chat",
        "x": "other",
        "y": "other",
    }


def test_a_document_takes_the_place_of_the_shipped_profile_of_its_name(load_texts: Loader) -> None:
    mine = document("SharingProfile", "whole", "mode: Exclusive\nnodeSelector: {pool: mine}")
    result = load_texts(COMPLETE, mine)

    assert served(result).profiles["whole"].placement.node_selector["pool"] == "mine"
    assert not served(result).profiles["whole"].shipped
    assert lines(result) == [
        (
            "b.yaml:3:18: note: SharingProfile/whole: metadata.name: "
            "replaces the shipped profile of its name"
        )
    ]


def test_shipped_profiles_are_there_without_a_document(load_texts: Loader) -> None:
    found = served(load_texts(COMPLETE)).profiles

    assert found["h100-1g.10gb"].shipped
    assert not found["slice-4"].shipped


@pytest.mark.parametrize(
    ("profiles", "severity", "message"),
    [
        ("[slice-5]", "error", 'there is no profile "slice-5"; did you mean "slice-4"?'),
        (
            "[h100-1g10gb]",
            "error",
            'there is no profile "h100-1g10gb"; did you mean "h100-1g.10gb"',
        ),
        ('["mps-*"]', "warning", 'no profile\'s name matches "mps-*"'),
    ],
)
def test_a_tenants_profile_that_there_is_not_is_told(
    load_texts: Loader, profiles: str, severity: str, message: str
) -> None:
    tenant = document("Tenant", "t", f"namespaces: {{names: [x]}}\nprofiles: {profiles}")
    found = lines(load_texts(COMPLETE, tenant))

    assert len(found) == 1
    assert found[0].startswith(f"b.yaml:6:14: {severity}: Tenant/t: spec.profiles[0]: {message}")


def test_a_name_that_an_unreadable_file_may_hold_is_not_called_missing(load_texts: Loader) -> None:
    found = errors(load_texts(TENANT, POLICY, PROFILE + "---\na: [\n"))
    assert len(found) == 1

    found = errors(load_texts(TENANT, POLICY, "a: [\n"))
    assert len(found) == 1
    assert "did not find" in found[0]


def test_a_name_in_a_document_of_an_unknown_kind_is_not_called_missing(load_texts: Loader) -> None:
    misspelt = PROFILE.replace("SharingProfile", "SharingProfil")
    found = errors(load_texts(TENANT, POLICY, misspelt))

    assert len(found) == 1
    assert "unknown kind" in found[0]


def test_a_broken_profile_is_not_called_missing(load_texts: Loader) -> None:
    found = errors(load_texts(COMPLETE.replace("replicas: 4", "replicas: 1")))

    assert len(found) == 1
    assert "must be at least 2" in found[0]


def test_a_tenant_that_may_not_use_what_a_policy_gives_it_is_pointed_out(
    load_texts: Loader,
) -> None:
    tenant = document("Tenant", "t", 'namespaces: {names: [x]}\nprofiles: ["h100-*"]')
    policy = document(
        "GPUPolicy", "p", "order: 1\nmatch: {tenants: [chat, t]}\nrewrite: {profile: slice-4}"
    )
    found = lines(load_texts(COMPLETE, tenant, policy))

    assert found == [
        (
            "c.yaml:6:27: warning: GPUPolicy/p: spec.match.tenants[1]: "
            "tenant t may not use profile slice-4: its pods are refused"
        )
    ]


def test_for_whom_sharing_with_the_cohort_is_sharing_alone_is_noted(load_texts: Loader) -> None:
    names = ["b", "c", "d", "e"]
    tenants = [document("Tenant", name, f"namespaces: {{names: [{name}]}}") for name in names]
    member = document("Tenant", "m", "namespaces: {names: [m]}\ncohort: main")
    other = document("Tenant", "o", "namespaces: {names: [o]}\nprofiles: [whole]")
    complete = COMPLETE.replace("replicas: 4", "replicas: 4, shareWith: Cohort")
    note = "a.yaml:10:49: note: SharingProfile/slice-4: spec.shareWith: means the tenant alone for "

    assert lines(load_texts(complete, member, other)) == [f"{note}tenant chat, being in no cohort"]
    assert lines(load_texts(complete, member, *tenants)) == [
        f"{note}tenants chat, b, c and 2 more, being in no cohort"
    ]
    in_cohort = complete.replace("{names: [chat]}", "{names: [chat]}\n  cohort: main")
    assert lines(load_texts(in_cohort, member)) == []


def test_a_test_that_expects_a_profile_that_there_is_not_is_pointed_out(load_texts: Loader) -> None:
    spec = """
        facts: f.yaml
        cases:
        - {name: a, pod: {file: p.yaml}, expect: {verdict: Allowed, profile: slice-5}}
        """
    found = load_texts(COMPLETE, document("PolicyTest", "t", spec))

    assert lines(found) == [
        (
            "b.yaml:7:72: warning: PolicyTest/t: spec.cases[0].expect.profile: "
            'there is no profile "slice-5"; did you mean "slice-4"?'
        )
    ]


def test_an_empty_set_is_served_and_refuses_everything(load_texts: Loader) -> None:
    for result in (load_texts(), load_texts(""), load_texts(PROFILE)):
        assert served(result).policies == ()
        assert served(result).tenants == {}
        assert lines(result) == [
            "warning: there is no Tenant: every GPU pod is in a namespace of no tenant (NoTenant)"
        ]


@pytest.mark.parametrize("enforcement", ["Warn", "Audit"])
def test_a_set_in_which_nothing_rewrites_is_pointed_out(
    load_texts: Loader, enforcement: str
) -> None:
    trial = POLICY + f"  enforcement: {enforcement}\n"
    message = "warning: no GPUPolicy rewrites: every GPU pod of a tenant is refused (NoPolicy)"

    assert lines(load_texts(TENANT)) == [message]
    assert lines(load_texts(TENANT, PROFILE, trial)) == [message]


def test_a_test_that_expects_a_policy_that_there_is_not_is_pointed_out(load_texts: Loader) -> None:
    spec = """
        facts: f.yaml
        cases:
        - {name: a, pod: {file: p.yaml}, expect: {verdict: Allowed, policy: no-raw-gpus}}
        """
    found = load_texts(COMPLETE, document("PolicyTest", "t", spec))

    assert found.policy_set is not None
    assert lines(found, Severity.WARNING) == [
        (
            "b.yaml:7:71: warning: PolicyTest/t: spec.cases[0].expect.policy: "
            'there is no policy "no-raw-gpus"; did you mean "no-raw-gpu"?'
        )
    ]
