# SPDX-License-Identifier: Apache-2.0
"""One environment for all tests of CEL, and a review to evaluate in."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from policies.cel import Environment, Expression, ResultType, build_environment

Variables = Sequence[tuple[str, str]]
Evaluate = Callable[..., object]

POD: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "worker",
        "labels": {"workload": "inference"},
        "annotations": {"nvidia.com/gpu-exclusive": "true"},
    },
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example/app:1",
                "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "4Gi"}},
            },
            {"name": "side", "image": "registry.example/side:1"},
        ],
    },
}
QUOTA: Mapping[str, Any] = {
    "gpus": {"ceiling": 48.0},
    "pools": {"a100": {"ceiling": 8.0}},
}
REVIEW: Mapping[str, Any] = {
    "object": POD,
    "oldObject": None,
    "request": {
        "uid": "705ab4f5",
        "operation": "CREATE",
        "namespace": "chat",
        "dryRun": False,
        "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
        "object": POD,
    },
    "namespaceObject": {"metadata": {"name": "chat", "labels": {"team": "chat"}}},
    "gpu": {
        "devices": 1,
        "milli": 1000,
        "memory": 0,
        "mode": "",
        "exclusive": False,
        "containers": [{"name": "main", "kind": "App", "devices": 1, "resource": "nvidia.com/gpu"}],
    },
    "tenant": {"name": "chat", "labels": {}, "quota": QUOTA},
}


@pytest.fixture(scope="session")
def environment() -> Environment:
    return build_environment()


@pytest.fixture(scope="session")
def evaluate(environment: Environment) -> Evaluate:
    """Compile an expression after its variables and evaluate it in the review, or another."""

    def run(
        source: str,
        *,
        result: ResultType = ResultType.ANY,
        variables: Variables = (),
        review: Mapping[str, object] = REVIEW,
    ) -> object:
        declared: list[tuple[str, Expression]] = []
        for name, text in variables:
            declared.append((name, environment.compile(text, ResultType.ANY, declared)))
        expression = environment.compile(source, result, declared)
        return expression.evaluate(environment.scope(review))

    return run
