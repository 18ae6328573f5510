# SPDX-License-Identifier: Apache-2.0
"""Who leads, and what is served."""

from typing import Final

from tests.integration.monitoring.cases.case import Case

HEALTH: Final = (
    Case(
        "SluiceGone",
        {'sluice_policy_set_info{generation="7c1f"}': "1x5 stale"},
        20,
        {},
        "No process of Sluice is seen",
        "None runs, or Prometheus does not reach them. While none runs, GPU pods are refused and "
        "nothing that waits for quota is released.",
        ({'sluice_policy_set_info{generation="7c1f"}': "1x400"},),
        recalls=True,
    ),
    Case(
        "SluiceNoLeader",
        {'sluice_leader{instance="s1"}': "0x400", 'sluice_leader{instance="s2"}': "1x10 0x400"},
        30,
        {},
        "Nobody leads",
        "Pods go on being decided on, and nothing that waits for quota is released, nothing is "
        "taken back, nothing is metered.",
        (
            {'sluice_leader{instance="s1"}': "0x400", 'sluice_leader{instance="s2"}': "1x400"},
            # It goes from one to the other.
            {
                'sluice_leader{instance="s1"}': "1x20 0x400",
                'sluice_leader{instance="s2"}': "0x22 1x400",
            },
        ),
    ),
    Case(
        "SluiceSeveralLeaders",
        {'sluice_leader{instance="s1"}': "1x400", 'sluice_leader{instance="s2"}': "1x400"},
        10,
        {},
        "2 processes say that they lead",
        "Ceilings hold all the same, since what is under way stands on the Lease; but this is a "
        "fault, or there are two installations.",
        ({'sluice_leader{instance="s1"}': "1x400", 'sluice_leader{instance="s2"}': "0x400"},),
    ),
    Case(
        "SluiceControllersFailing",
        {"sluice_controllers_failures_total": "0x19 2x400"},
        30,
        {},
        "Controllers of Sluice died 2 times in 30 minutes",
        "Another process leads after each. It is a fault of Sluice, with a traceback in the log.",
        (
            {"sluice_controllers_failures_total": "0x400"},
            # The process has started anew.
            {"sluice_controllers_failures_total": "2x19 0x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceDocumentsBroken",
        {'sluice_policy_set_broken{instance="s1"}': "1x400"},
        20,
        {"instance": "s1"},
        "The policy documents of s1 are broken",
        "It goes on with the last good set, and takes up no change until they are mended.",
        (
            {'sluice_policy_set_broken{instance="s1"}': "0x400"},
            # Somebody has mended them within minutes.
            {'sluice_policy_set_broken{instance="s1"}': "1x3 0x400"},
        ),
    ),
    Case(
        "SluiceDocumentsDiffer",
        {
            'sluice_policy_set_info{instance="s1",generation="7c1f"}': "1x400",
            'sluice_policy_set_info{instance="s2",generation="90ab"}': "1x400",
        },
        30,
        {},
        "Processes of Sluice decide by 2 different sets of documents",
        "What a pod gets depends on which of them is asked.",
        (
            {
                'sluice_policy_set_info{instance="s1",generation="7c1f"}': "1x400",
                'sluice_policy_set_info{instance="s2",generation="7c1f"}': "1x400",
            },
        ),
    ),
    Case(
        "SluiceFactsStale",
        {'sluice_facts_age_seconds{instance="s1"}': "0+60x400"},
        20,
        {"instance": "s1"},
        "s1 has not heard of nodes and namespaces for 20m 0s",
        "It decides on what it last knew, and says so in its answers.",
        ({'sluice_facts_age_seconds{instance="s1"}': "0x400"},),
    ),
)
