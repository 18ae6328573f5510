# SPDX-License-Identifier: Apache-2.0
"""Releases name the term of their leader, and those of a leader whose term is over are refused."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import pytest

from policies.model.term import LeaseTerm, read_term
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from reconciler.kube.access import KubeconfigAccess
from reconciler.kube.client import Client
from reconciler.kube.errors import PastTermError
from reconciler.kube.lease import lease_term
from reconciler.kube.resources import LEASES, PODS, Target
from reconciler.quota.patches import release_patch
from tests.integration.sluice.objects import GATE, HOLD, gates, pod
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team

_LEASE: Final = Target(LEASES, "sluice", "sluice")
_TERM: Final = "state.sluice.dev/term"


@pytest.fixture
async def as_sluice(sluice: Running) -> AsyncIterator[Client]:
    """A client with Sluice's own token, as a past leader still has it."""
    async with Client(KubeconfigAccess(str(sluice.installed.kubeconfig))) as opened:
        yield opened


async def _release(client: Client, team: Team, term: LeaseTerm | None) -> dict[str, Any]:
    target = Target(PODS, "gpu", team.namespace)
    found: Any = await client.get(target)
    charge = ChargeRecord("team-a", "", Amount({4: 1}), "of-a-past-leader", 1)
    patch = release_patch(found["metadata"]["resourceVersion"], charge, {}, "", term)
    return dict(await client.patch_merge(target, patch))


async def test_a_release_of_an_older_term_is_refused_and_one_of_the_current_lands(
    team_a: Team, as_sluice: Client
) -> None:
    team_a.create(pod(schedulingGates=[{"name": HOLD}]))
    current = lease_term(await as_sluice.get(_LEASE))
    older = replace(current, transitions=current.transitions - 1)
    deleted = replace(current, uid="another", created="2020-01-01T00:00:00Z", transitions=99)

    for past in (older, deleted):
        with pytest.raises(PastTermError, match="is over: who holds it in term"):
            await _release(as_sluice, team_a, past)
        assert set(gates(team_a.pod())) == {HOLD, GATE}

    released = await _release(as_sluice, team_a, current)

    assert gates(released) == []
    assert released["metadata"]["annotations"][_TERM] == current.to_annotation()


async def test_every_release_of_the_leader_names_its_term(team_a: Team, as_sluice: Client) -> None:
    team_a.create(pod())

    released = team_a.running()

    named = read_term(released["metadata"]["annotations"][_TERM])
    assert named == lease_term(await as_sluice.get(_LEASE))
