# SPDX-License-Identifier: Apache-2.0
"""Answers of the webhook and of the extender."""

from typing import Final

from tests.integration.monitoring.cases.case import Case, histogram

_REVIEW: Final = "sluice_review_duration_seconds"
_EXTENDER: Final = "sluice_extender_duration_seconds"

REVIEWS: Final = (
    Case(
        "SluiceReviewErrors",
        {
            'sluice_internal_errors_total{phase="Mutate",cause="Exception"}': "0+6x400",
            'sluice_reviews_total{phase="Mutate",verdict="Denied"}': "0+60x400",
        },
        20,
        {"phase": "Mutate"},
        "Sluice could not decide 10% of the Mutate reviews",
        "They got the configured failure mode, by default a refusal of GPU pods.",
        (
            {
                'sluice_internal_errors_total{phase="Mutate",cause="Exception"}': "0x400",
                'sluice_reviews_total{phase="Mutate",verdict="Denied"}': "0+60x400",
            },
            # Long ago, and nobody asks.
            {
                'sluice_internal_errors_total{phase="Mutate",cause="Exception"}': "9x400",
                'sluice_reviews_total{phase="Mutate",verdict="Denied"}': "60x400",
            },
        ),
        recalls=True,
    ),
    Case(
        "SluiceReviewLatencyHigh",
        histogram(_REVIEW, 'phase="Mutate"', "0+50x400", "0+100x400"),
        30,
        {"phase": "Mutate"},
        "One in 100 Mutate reviews takes 4.9s or more",
        "Every GPU pod is created so much later; the API server gives up after 5 s.",
        (
            histogram(_REVIEW, 'phase="Mutate"', "0+100x400", "0+100x400"),
            histogram(_REVIEW, 'phase="Mutate"', "50x400", "100x400"),
        ),
        recalls=True,
    ),
    Case(
        "SluiceExtenderFailing",
        {'sluice_extender_failures_total{verb="filter"}': "0x19 3x400"},
        25,
        {"verb": "filter"},
        "The extender failed to answer 3 times on filter",
        "In these cases of the last 15 minutes every node passed, and memory and load were not "
        "looked at.",
        (
            {'sluice_extender_failures_total{verb="filter"}': "0x400"},
            {'sluice_extender_failures_total{verb="filter"}': "0 3x400"},
            {'sluice_extender_failures_total{verb="filter"}': "5x19 0x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceExtenderSlow",
        histogram(_EXTENDER, 'verb="filter"', "0+50x400", "0+100x400"),
        30,
        {"verb": "filter"},
        "One in 100 answers of the extender takes 4.9s or more",
        "kube-scheduler goes on without an answer after 200 ms (filter).",
        (histogram(_EXTENDER, 'verb="filter"', "0+100x400", "0+100x400"),),
        recalls=True,
    ),
    Case(
        "SluiceExtenderGone",
        {
            'sluice_extender_active{instance="e1"}': "1x10 stale",
            'sluice_extender_active{instance="e2"}': "0x400",
        },
        30,
        {},
        "No extender is active, and there was one within a day",
        "kube-scheduler goes on without: devices are counted, memory and load are not looked at.",
        (
            {'sluice_extender_active{instance="e1"}': "0x400"},
            {
                'sluice_extender_active{instance="e1"}': "1x10 0x400",
                'sluice_extender_active{instance="e2"}': "0x11 1x400",
            },
        ),
        recalls=True,
    ),
)
