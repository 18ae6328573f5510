# SPDX-License-Identifier: Apache-2.0
"""Violations of the schema are told in words people understand, all at once, where they are."""

import pytest

from tests.unit.documents.loading import COMPLETE, TENANT, Loader, document, errors, served


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("enforcemnt: Warn", '5:3: {}enforcemnt: unknown field; did you mean "enforcement"?'),
        ("zebra: 1", "5:3: {}zebra: unknown field; known are description, order, match, "),
        ("zebra:", "5:3: {}zebra: unknown field; known are description, order, match, "),
        (
            "enforcement: enforce",
            '5:16: {}enforcement: must be one of Enforce, Warn, Audit; is "en',
        ),
        ("enforcement: Enforced", 'Audit; is "Enforced"; did you mean "Enforce"?'),
        ("enforcement: true", "must be text, is true; put it in quotes: "),
        ("enforcement:", "5:15: {}enforcement: must be text, is empty; give it a value, or leave"),
        ('order: "10"', '{}order: must be a whole number, is "10"; write 10 without quotes'),
        ("order: 010", '{}order: must be a whole number, is "010"; write 10'),
        ("order: 1_000", '{}order: must be a whole number, is "1_000"; write 1000'),
        ("order: 1.5", "{}order: must be a whole number, is 1.5"),
        ("order: -1", "{}order: must be at least 0, is -1"),
        ("order: 1000001", "{}order: must be at most 1000000, is 1000001"),
        ("order: first", '{}order: must be a whole number, is "first"'),
        ("exclusive: yes", '{}exclusive: must be true or false, is "yes"; write true'),
        ('exclusive: "false"', '{}exclusive: must be true or false, is "false"; write false with'),
        ("exclusive: 1", "{}exclusive: must be true or false, is 1"),
        ("match: []", "{}match: must be a mapping of fields, is a list"),
        ("match: {namespaces: chat}", 'namespaces: must be a list, is "chat"; write it as a list'),
        ("match: {namespaces: []}", "{}match.namespaces: must have at least one item"),
        ("match: {namespaces: [a, b, a]}", '5:30: {}match.namespaces[2]: "a" is in this list twi'),
        (
            "match: {namespaces: [A]}",
            "{}match.namespaces[0]: must be lower-case letters, digits an",
        ),
        (
            "match: {ownerKinds: [job]}",
            'capital letter, then letters and digits, such as Job; is "j',
        ),
        ("match: {labels: {matchLabels: {a: 5}}}", 'must be text, is 5; put it in quotes: "5"'),
        (
            "match: {labels: {matchLabels: {a: -}}}",
            "{}match.labels.matchLabels.a: must be a label v",
        ),
        ("rewrite: {}", "5:12: {}rewrite: must have at least one of profile, fit"),
        (
            "rewrite: {profile: whole, fit: {memory: {default: 8Gi}, candidates: [whole]}}",
            "5:12: {}rewrite: must have only 1 of profile, fit",
        ),
        (
            "rewrite: {profile: whole, profil: whole}",
            '5:29: {}rewrite.profil: unknown field; did you mean "profile"?',
        ),
        (
            "memoryLimit: {value: 0.5}\nrewrite: {profile: whole}",
            "5:24: {}memoryLimit.value: must be a quantity such as 8Gi, is 0.5",
        ),
        (
            "memoryLimit: {value: }\nrewrite: {profile: whole}",
            "{}memoryLimit.value: must be a quantity such as 8Gi, is empty; give it a value",
        ),
        ("rewrite: {profile: ''}", "{}rewrite.profile: must not be empty"),
        (
            f"description: {'x' * 1025}",
            "{}description: must have at most 1024 characters, has 1025",
        ),
        ("validate: [{name: a}]", "5:14: {}validate[0].expression: is missing"),
        (
            "variables: [{name: 1a, expression: 'true'}]",
            "must be a CEL identifier: letters, digits",
        ),
    ],
)
def test_a_violation_says_what_must_be_and_what_is(
    load_texts: Loader, spec: str, error: str
) -> None:
    found = errors(load_texts(COMPLETE, document("GPUPolicy", "p", spec)))

    expected = error.format("error: GPUPolicy/p: spec.")
    assert len(found) == 1, found
    assert found[0].startswith("b.yaml:5:")
    assert expected in found[0]


@pytest.mark.parametrize(
    ("gpus", "error"),
    [
        ("guarantee: 1.2345", "must have at most 3 decimal places, is 1.2345"),
        ("guarantee: 0.0001", "must have at most 3 decimal places, is 0.0001"),
        ("guarantee: -1", "must be at least 0, is -1"),
        ("guarantee: 1e40", "must be at most 1000000, is 1"),
        ("guarantee: 500m", 'must be a number, is "500m"; write 0.5'),
        ('guarantee: "2"', 'must be a number, is "2"; write 2 without quotes'),
        ("guarantee: 0.1m", 'must be a number, is "0.1m"'),
        ("guarantee: .inf", 'must be a number, is ".inf"'),
        ("guarantee: NaN", 'must be a number, is "NaN"'),
        ("guarantee: true", "must be a number, is true"),
    ],
)
def test_a_quota_that_is_no_decimal_is_refused(load_texts: Loader, gpus: str, error: str) -> None:
    spec = f"namespaces: {{names: [a]}}\nquota: {{gpus: {{{gpus}}}}}"
    found = errors(load_texts(document("Tenant", "t", spec)))

    assert len(found) == 1, found
    assert f"Tenant/t: spec.quota.gpus.guarantee: {error}" in found[0]


@pytest.mark.parametrize(
    "name", ["No_Raw", "a b", "-a", "a.", "a..b", "é", "a" * 64, "''", "a/b", '"a\\n"']
)
def test_a_name_that_is_no_dns_name_is_refused(load_texts: Loader, name: str) -> None:
    found = errors(load_texts(TENANT.replace("name: chat", f"name: {name}")))

    assert len(found) == 1
    assert "metadata.name: must " in found[0]


@pytest.mark.parametrize("name", ["a", "a-b", "h100-1g.10gb", "0", "a" * 63])
def test_a_dns_name_is_a_name(load_texts: Loader, name: str) -> None:
    result = load_texts(TENANT.replace("name: chat", f"name: '{name}'"))

    assert name in served(result).tenants


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "apiVersion: sluice.dev/v1alpha1\nkind: GPUPolcy\n",
            (
                '2:7: error: GPUPolcy: kind: unknown kind "GPUPolcy"; known are Settings, Tenant, '
                "GPUPool, SharingProfile, GPUPolicy, Exemption, ReclaimPolicy, PolicyTest; "
                'did you mean "GPUPolicy"?'
            ),
        ),
        (
            "apiVersion: sluice.dev/v1alpha1\n",
            "1:1: error: kind: is missing; write one of Settings",
        ),
        ("kind: Tenant\n", "1:1: error: Tenant: apiVersion: is missing; write sluice.dev/v1alpha1"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
            '1:13: error: ConfigMap/x: apiVersion: "v1" is no Sluice document; only sluice.dev/v1',
        ),
        ("- a\n", "1:1: error: a document must be a mapping of fields, is a list"),
        ("just text\n", '1:1: error: a document must be a mapping of fields, is "just text"'),
        (
            TENANT.replace("v1alpha1", "v1"),
            '1:13: error: Tenant/chat: apiVersion: must be "sluice.dev/v1alpha1", is "s',
        ),
        (
            TENANT.replace("spec:", "specs:"),
            "4:1: error: Tenant/chat: specs: unknown field; did you",
        ),
        (TENANT.replace("spec:", "specs:"), "1:1: error: Tenant/chat: spec: is missing"),
        ("apiVersion: sluice.dev/v1alpha1\nkind: [a]\n", "2:7: error: kind: unknown kind a list"),
    ],
)
def test_a_document_that_is_none_of_ours_says_why(
    load_texts: Loader, text: str, error: str
) -> None:
    found = errors(load_texts(text))

    assert any(line.startswith(f"a.yaml:{error}") for line in found), found


@pytest.mark.parametrize(
    ("kind", "spec", "place", "path"),
    [
        ("ReclaimPolicy", "notice: 2m\nidle: {action: Report}", "6:3", "spec.idle"),
        ("GPUPolicy", "validate: []\nplacement: {}", "6:3", "spec.placement"),
    ],
)
def test_a_field_that_comes_later_is_told_from_an_unknown_one(
    load_texts: Loader, kind: str, spec: str, place: str, path: str
) -> None:
    found = errors(load_texts(document(kind, "x", spec)))

    assert len(found) == 1, found
    assert found[0].startswith(f"a.yaml:{place}: error: {kind}/x: {path}: is not supported yet (")


@pytest.mark.parametrize("mode", ["vGPU", "DRA"])
def test_a_sharing_mode_that_comes_later_is_told_from_an_unknown_one(
    load_texts: Loader, mode: str
) -> None:
    found = errors(load_texts(document("SharingProfile", "x", f"mode: {mode}")))

    expected = (
        f'a.yaml:5:9: error: SharingProfile/x: spec.mode: "{mode}" is not supported yet; '
        "there is Exclusive, MIG, TimeSlice, MPS"
    )
    assert found == [expected]


@pytest.mark.parametrize(
    "kind",
    ["GPUAutoscaler", "DeschedulePolicy", "PartitionPolicy"],
)
def test_a_kind_that_comes_later_is_told_from_an_unknown_one(load_texts: Loader, kind: str) -> None:
    found = errors(load_texts(document(kind, "x", "anything: 1")))

    assert len(found) == 1
    assert found[0].startswith(f"a.yaml:2:7: error: {kind}/x: kind: kind {kind} (")
    assert found[0].endswith("is not supported yet")


def test_all_violations_of_a_document_are_told_at_once(load_texts: Loader) -> None:
    spec = """
        order: "1"
        match:
          tenants: [chta]
          when:
          - {name: a, expression: gpus.devices == 1}
        rewrite: {profil: slice-4}
        exclusive: maybe
        """
    found = errors(load_texts(COMPLETE, document("GPUPolicy", "p", spec)))

    assert [line.split(": ")[0] for line in found] == [
        f"b.yaml:{place}" for place in ("5:10", "7:15", "9:29", "10:13", "11:14")
    ]


def test_a_hostile_document_gets_a_bounded_list(load_texts: Loader) -> None:
    spec = "\n".join(f"{'f' * 900}{n}: 1" for n in range(500))
    found = errors(load_texts(document("GPUPolicy", "p", spec)))

    assert len(found) == 50
