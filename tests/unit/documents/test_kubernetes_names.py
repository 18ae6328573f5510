# SPDX-License-Identifier: Apache-2.0
"""Names are judged as the API server judges them."""

import pytest

from policies.documents.kubernetes_names import is_extended_resource, is_qualified_name


@pytest.mark.parametrize(
    "name", ["a", "A_b.c-9", "example.com/a", "nvidia.com/gpu.product", "a" * 63, "x.y/" + "a" * 63]
)
def test_a_label_key_is_one(name: str) -> None:
    assert is_qualified_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "/a", "a/", "a/b/c", "-a", "a-", "a b", "é", "A.com/a", "a" * 64, "a\n"),
        *(".com/a", "a..b/c", f"{'a' * 64}.com/x", f"{'a.' * 127}a/x"),
    ],
)
def test_what_is_no_label_key_is_none(name: str) -> None:
    assert not is_qualified_name(name)


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb.shared", "amd.com/gpu"])
def test_a_device_is_an_extended_resource(name: str) -> None:
    assert is_extended_resource(name)


@pytest.mark.parametrize(
    "name",
    ["cpu", "kubernetes.io/batch-cpu", "x.kubernetes.io/a", "requests.nvidia.com/gpu", "a b/c"],
)
def test_what_the_api_server_keeps_for_itself_is_no_extended_resource(name: str) -> None:
    assert not is_extended_resource(name)
