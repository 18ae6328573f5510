# SPDX-License-Identifier: Apache-2.0
"""The generation names the content of a set, and nothing of how it is laid out in files."""

import re

import pytest

from tests.unit.documents.loading import COMPLETE, POLICY, PROFILE, TENANT, Loader, document, served

QUOTA = TENANT + "  quota: {gpus: {ceiling: 2.5}}\n"


def generation(load_texts: Loader, *texts: str) -> str:
    return served(load_texts(*texts)).generation


def test_it_is_twelve_hex_digits(load_texts: Loader) -> None:
    assert re.fullmatch("[0-9a-f]{12}", generation(load_texts, COMPLETE))


@pytest.mark.parametrize(
    "texts",
    [
        (TENANT, PROFILE, POLICY),
        (POLICY, f"{PROFILE}---\n{TENANT}"),
        ("# why\n" + COMPLETE.replace("spec:\n", "spec: # what\n"),),
        (COMPLETE.replace("metadata: {name: chat}", "metadata:\n  name: 'chat'"),),
        (COMPLETE.replace("mode: TimeSlice, replicas: 4", "replicas: 4, mode: TimeSlice"),),
        (COMPLETE.replace("replicas: 4", "replicas: 4.0"),),
    ],
)
def test_layout_order_and_comments_do_not_change_it(
    load_texts: Loader, texts: tuple[str, ...]
) -> None:
    assert generation(load_texts, *texts) == generation(load_texts, COMPLETE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("replicas: 4", "replicas: 5"),
        ("[chat]", "[chat, chat2]"),
        ("rewrite: {profile: slice-4}", "rewrite: {profile: slice-4}\n  description: x"),
        ("ceiling: 2.5", "ceiling: 2.501"),
    ],
)
def test_any_change_of_content_changes_it(load_texts: Loader, old: str, new: str) -> None:
    text = COMPLETE.replace(TENANT, QUOTA)

    assert generation(load_texts, text.replace(old, new)) != generation(load_texts, text)


def test_a_number_is_the_same_however_it_is_written(load_texts: Loader) -> None:
    other = QUOTA.replace("2.5", "25e-1")

    assert generation(load_texts, other) == generation(load_texts, QUOTA)


def test_tests_are_no_part_of_it(load_texts: Loader) -> None:
    spec = "facts: f\ncases: [{name: a, pod: {file: p}, expect: {verdict: Allowed}}]"

    assert generation(load_texts, COMPLETE, document("PolicyTest", "t", spec)) == generation(
        load_texts, COMPLETE
    )


def test_settings_are_part_of_it(load_texts: Loader) -> None:
    observe = document("Settings", "cluster", "mode: Observe")

    assert generation(load_texts, COMPLETE, observe) != generation(load_texts, COMPLETE)
