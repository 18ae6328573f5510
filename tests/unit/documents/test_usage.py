# SPDX-License-Identifier: Apache-2.0
"""What a tenant uses is read from its status, and no status can stop the reading."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.documents.usage import tenant_usage
from policies.model.usage import TenantUsage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ("used", "pending", "pools", "memory", "resources")


def tenant(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "finance"}, "status": status}


def usage(**status: Any) -> TenantUsage:
    found = tenant_usage(tenant(**status))
    assert found is not None
    assert found[0] == "finance"
    return found[1]


def test_every_part_of_a_status_is_read_in_the_units_of_the_core() -> None:
    found = usage(
        used="14.25",
        pending=3,
        memory={"used": "40Gi"},
        resources={"nvidia.com/mig-1g.10gb": {"used": 2, "ceiling": 4}},
        pools=[{"name": "", "used": "2"}, {"name": "a100", "used": "12.25"}],
    )

    assert found == TenantUsage(
        {"": 2000, "a100": 12250}, 40 * 1024, {"nvidia.com/mig-1g.10gb": 2}, 3
    )


def test_without_pools_all_is_used_in_the_default_one() -> None:
    assert usage(used="0.125") == TenantUsage({"": 125})


@pytest.mark.parametrize("item", [{}, {"status": {}}, {"status": None}, {"status": [1]}, tenant()])
def test_a_status_that_was_not_written_yet_tells_nothing(item: dict[str, Any]) -> None:
    assert tenant_usage(item) is None


@pytest.mark.parametrize("odd", [None, "", "many", "1e", "NaN", -1, "-1", [], {}, True, 10**400])
def test_an_odd_amount_counts_as_nothing(odd: object) -> None:
    found = usage(
        used=odd, pending=odd, memory={"used": odd}, resources={"a.b/c": {"used": odd}}, pools=odd
    )

    assert all(milli >= 0 for milli in found.milli_by_pool.values())
    assert found.memory_mib >= 0
    assert all(count >= 0 for count in found.counts.values())
    assert found.pending >= 0


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), JSON)
def test_no_status_can_stop_the_reading(status: dict[str, Any], metadata: object) -> None:
    for item in ({"metadata": metadata, "status": status}, {"status": metadata}):
        tenant_usage(item)


@given(JSON, JSON)
def test_no_pool_and_no_resource_can_stop_the_reading(one: object, other: object) -> None:
    found = usage(
        used="1",
        pools=[one, {"name": one, "used": other}],
        resources={"a.b/c": one, "a.b/d": {"used": other}},
    )

    assert set(found.counts) == {"a.b/c", "a.b/d"}
