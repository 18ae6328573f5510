# SPDX-License-Identifier: Apache-2.0
"""What the API server does not send to Sluice is what Sluice would not have touched."""

from functools import lru_cache
from typing import Any

from hypothesis import given

from policies.cel import EvaluationError, Expression, ResultType, build_environment
from policies.rewrite.containers import voided
from reconciler.manifests.predicates import Predicates
from tests.support.builders import Json, catalog, mutate, validate
from tests.support.pods import SECTIONS, gpus_of
from tests.support.strategies import pods

ENVIRONMENT = build_environment()


@lru_cache
def _touches_gpus() -> Expression:
    text = Predicates(catalog()).pod_touches_gpus("object")
    return ENVIRONMENT.compile(text, ResultType.BOOL)


def _is_sent(found: Json) -> bool:
    try:
        return bool(_touches_gpus().evaluate(ENVIRONMENT.scope({"object": found})))
    except EvaluationError:
        return True  # the failure policy of the entry refuses


def _admitted(found: Json) -> Json:
    """Return the pod as the API server holds it: no nulls, and void where no GPU is asked for."""
    built: Json = _without_nulls(found)
    for section in SECTIONS:
        for container in built["spec"].get(section, []):
            if "limits" not in gpus_of(container):
                container["env"] = list(voided(container.get("env", [])))
    return built


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


@given(pods(tame=False))
def test_a_pod_that_is_not_sent_would_be_neither_refused_nor_changed(found: Json) -> None:
    admitted = _admitted(found)
    if not _is_sent(admitted):
        assert mutate(admitted).patch == ()
        assert validate(admitted).allowed
