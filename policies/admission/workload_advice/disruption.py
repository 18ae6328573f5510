# SPDX-License-Identifier: Apache-2.0
"""A Job that may run on borrowed GPUs, whose failures would count what is taken back from it.

Source: batch/v1 PodFailurePolicy; the Eviction API sets the pod condition DisruptionTarget.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from policies.admission.workload_advice.subject import Advised, Gated, whole
from policies.cluster.reading import mapping, mappings
from policies.model.tenant import Quota
from policies.quota.reclaimable import asks_not_to_be_disrupted

_CONDITION: Final = "DisruptionTarget"
_BACKOFF_LIMIT: Final = 6
_GRACE_SECONDS: Final = 30
"""Defaults of the Kubernetes API."""


def disruption(_: Advised, found: Gated) -> Iterator[str]:
    """Advise to let disruptions not count as failures."""
    job = found.job
    if not job or not _may_be_taken_back(found) or _ignores_disruptions(job):
        return
    limit = whole(job.get("backoffLimit"))
    restart = found.context.pod.spec.get("restartPolicy")
    needs = ", which needs restartPolicy: Never" if restart == "OnFailure" else ""
    yield (
        "a pod taken back from borrowed GPUs counts as failed (backoffLimit "
        f"{_BACKOFF_LIMIT if limit is None else limit}): add a podFailurePolicy that ignores "
        f"{_CONDITION}{needs}"
    )


def _may_be_taken_back(found: Gated) -> bool:
    """Tell whether the tenant may borrow for these pods, and could lose them again."""
    policy = found.context.policies.reclaim_policy_of(found.tenant.cohort)
    grace = whole(found.context.pod.spec.get("terminationGracePeriodSeconds"))
    is_kept = (
        found.judged.outcome.exclusive
        or asks_not_to_be_disrupted(found.annotations)
        or (_GRACE_SECONDS if grace is None else grace) > policy.max_grace_seconds
    )
    quotas = found.judged.outcome.reach.quotas(found.tenant)
    return policy.enabled and not is_kept and any(map(_may_borrow, quotas))


def _may_borrow(quota: Quota) -> bool:
    ceiling = quota.ceiling_milli
    return ceiling is None or ceiling > (quota.guarantee_milli or 0)


def _ignores_disruptions(job: Mapping[str, object]) -> bool:
    """Tell what the first rule on the condition does: later ones are not looked at."""
    for rule in mappings(mapping(job, "podFailurePolicy"), "rules"):
        if any(_is_disruption(condition) for condition in mappings(rule, "onPodConditions")):
            return rule.get("action") == "Ignore"
    return False


def _is_disruption(condition: Mapping[str, object]) -> bool:
    return condition.get("type") == _CONDITION and condition.get("status", "True") == "True"
