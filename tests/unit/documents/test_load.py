# SPDX-License-Identifier: Apache-2.0
"""A load gives one whole set, or every problem of every document at once."""

from policies.model.settings import FailureMode, Mode, Settings, WithoutTenant
from tests.unit.documents.loading import (
    COMPLETE,
    POLICY,
    PROFILE,
    TENANT,
    Loader,
    document,
    errors,
    served,
)


def test_a_set_without_settings_has_the_safe_defaults(load_texts: Loader) -> None:
    assert served(load_texts(COMPLETE)).settings == Settings()


def test_settings_are_read(load_texts: Loader) -> None:
    spec = """
        mode: Observe
        namespacesWithoutTenant: Warn
        failureMode: Allow
        account: system:serviceaccount:gpu:sluice
        """
    found = served(load_texts(COMPLETE, document("Settings", "cluster", spec))).settings

    assert found == Settings(
        Mode.OBSERVE, WithoutTenant.WARN, FailureMode.ALLOW, "system:serviceaccount:gpu:sluice"
    )


def test_settings_left_out_keep_their_defaults(load_texts: Loader) -> None:
    found = served(load_texts(document("Settings", "cluster", "mode: Observe"))).settings

    assert found == Settings(mode=Mode.OBSERVE)


def test_problems_of_all_files_come_at_once_in_the_order_of_the_files(load_texts: Loader) -> None:
    result = load_texts(
        POLICY.replace("rewrite", "rewrit"),
        "a: [\n",
        TENANT.replace("spec:", "spec:\n  weight: 0"),
        PROFILE.replace("TimeSlice", "MIG"),
        "apiVersion: v1\nkind: Pod\n",
    )

    assert result.policy_set is None
    assert [line[:6] for line in errors(result)] == [
        f"{name}.yaml" for name in ("a", "b", "c", "d", "e")
    ]


def test_one_error_keeps_the_whole_set_back(load_texts: Loader) -> None:
    broken = document("Tenant", "other", "namespaces: {names: [Other]}")

    assert load_texts(COMPLETE).policy_set is not None
    assert load_texts(COMPLETE, broken).policy_set is None


def test_what_a_text_has_at_fault_is_not_told_twice(load_texts: Loader) -> None:
    assert len(errors(load_texts(TENANT.replace("name: chat", "name: !x chat")))) == 1


def test_json_documents_are_documents(load_texts: Loader) -> None:
    text = (
        '{"apiVersion": "sluice.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "chat"},\n'
        '\t"spec": {"namespaces": {"names": ["chat"]}, "quota": {"gpus": {"ceiling": 0.25}}}}'
    )

    assert served(load_texts(text)).tenants["chat"].ceiling_milli == 250


def test_anchors_save_writing(load_texts: Loader) -> None:
    spec = """
        match: {labels: &one {matchLabels: {a: b}}}
        rewrite: {profile: whole}
        order: 1
        """
    first = document("GPUPolicy", "x", spec)
    both = f"{first}  validate: [{{name: &n nm, expression: &e gpu.devices == 1, message: *n}}]\n"
    found = served(load_texts(both)).policies[0]

    assert found.validate[0].message == "nm"


def test_loading_twice_gives_the_same(load_texts: Loader) -> None:
    one, other = load_texts(COMPLETE), load_texts(COMPLETE)

    assert served(one).generation == served(other).generation
    assert served(one).tenants == served(other).tenants
    assert served(one).profiles == served(other).profiles
    assert one.problems == other.problems
