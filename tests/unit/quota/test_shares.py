# SPDX-License-Identifier: Apache-2.0
"""Weights decide between borrowers by the pool that they go to, and by what may be lent in it."""

from collections import Counter

from policies.cluster.nodes import Node
from tests.support.planning import World, node, pool, released, tenant

_LENDER = tenant("lender", 5, 5, cohort="c")


def test_what_an_idle_tenant_lends_is_shared_by_weight() -> None:
    borrowers = [tenant("light", 0, 9, cohort="c"), tenant("heavy", 0, 9, cohort="c", weight=4)]
    world = World([_LENDER, *borrowers], [node("n1", 5)])
    world.idle()
    world.wait("light", many=5, created_at=world.now - 500)
    world.wait("heavy", many=5)
    assert Counter(released(world.plan())) == {"light": 1, "heavy": 4}


def test_what_is_not_lent_is_no_share_of_others() -> None:
    """Of the 8 outside, each may have 4; were it of all 13, `heavy` would come last."""
    borrowers = [tenant("light", 0, 9, cohort="c"), tenant("heavy", 0, 9, cohort="c")]
    world = World([_LENDER, *borrowers], [node("n1", 13)])
    world.run("heavy", many=3)
    world.wait("light", many=9, created_at=world.now - 500)
    world.wait("heavy", many=2, created_at=world.now - 900)
    assert Counter(released(world.plan())) == {"light": 4, "heavy": 1}


_QUOTAS = {"": (0, 9), "a100": (0, 9)}
_BOTH = [tenant("light", pools=_QUOTAS), tenant("heavy", pools=_QUOTAS, weight=3)]
_POOLS = {"a100": pool("a100", model="A100")}
_HERE = {"zone": "here"}


def _world(*more: Node) -> World:
    """Have four GPUs in a pool, and some in the default one that nobody who waits can reach."""
    nodes = [node("n1", 4, model="A100", **_HERE), node("far", 1, model="H100"), *more]
    world = World(_BOTH, nodes, pools=_POOLS)
    world.wait("light", many=8, created_at=world.now - 500, selector=_HERE)
    world.wait("heavy", many=8, selector=_HERE)
    return world


def test_weights_count_where_a_pod_goes_and_not_where_it_might_go() -> None:
    assert Counter(released(_world().plan())) == {"light": 1, "heavy": 3}


def test_weights_count_in_the_pool_that_is_left_when_another_is_full() -> None:
    planned = _world(node("n2", 4, **_HERE)).plan()
    by_pool = Counter((r.charge.tenant, r.charge.pool) for r in planned.releases)
    each = {("light", ""): 1, ("heavy", ""): 3, ("light", "a100"): 1, ("heavy", "a100"): 3}
    assert by_pool == each
