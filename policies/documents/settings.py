# SPDX-License-Identifier: Apache-2.0
"""Kind `Settings`: from the document to the value. Defaults are the model's."""

from collections.abc import Iterator

from policies.documents.compiled import Compiled
from policies.documents.durations import (
    A_MINUTE_TO_A_WEEK,
    SECONDS_TO_A_DAY,
    UP_TO_A_WEEK,
    duration_problems,
    duration_seconds,
)
from policies.documents.field import Field, Subject
from policies.documents.placement import compile_placement, placement_problems
from policies.documents.problems import Problem
from policies.documents.workloads import check_workloads, compile_workloads
from policies.model.settings import (
    Budget,
    FailureMode,
    Mode,
    QueueSettings,
    Settings,
    WithoutTenant,
)


def compile_settings(subject: Subject) -> Compiled[Settings]:
    """Return the settings, with the default for every field that is left out."""
    spec, default = subject.root.at("spec"), Settings()
    without_tenant = spec.at("namespacesWithoutTenant").text(default.namespaces_without_tenant)
    settings = Settings(
        mode=Mode(spec.at("mode").text(default.mode)),
        namespaces_without_tenant=WithoutTenant(without_tenant),
        failure_mode=FailureMode(spec.at("failureMode").text(default.failure_mode)),
        account=spec.at("account").text(default.account),
        workloads=compile_workloads(spec.at("workloads")),
        budget=_budget(spec.at("budget"), default.budget),
        priority_threshold=spec.at("priorityThreshold").optional_integer(),
        queue=_queue(spec.at("queue"), default.queue),
        placement=compile_placement(spec.at("placement")),
    )
    return Compiled(settings, subject.root, tuple(_problems(spec)))


def _budget(budget: Field, default: Budget) -> Budget:
    return Budget(
        per_tenant=budget.at("perTenant").optional_integer(),
        per_node=budget.at("perNode").optional_integer(),
        per_cluster=budget.at("perCluster").optional_integer(),
        per_seconds=duration_seconds(budget.at("per"), default.per_seconds),
    )


def _queue(queue: Field, default: QueueSettings) -> QueueSettings:
    return QueueSettings(
        reserve_after_seconds=duration_seconds(
            queue.at("reserveAfter"), default.reserve_after_seconds
        ),
        reserve_for_seconds=duration_seconds(queue.at("reserveFor"), default.reserve_for_seconds),
        release_without_nodes=queue.at("releaseWithoutNodes").boolean(
            default=default.release_without_nodes
        ),
        gang_timeout_seconds=duration_seconds(
            queue.at("gangTimeout"), default.gang_timeout_seconds
        ),
    )


def _problems(spec: Field) -> Iterator[Problem]:
    yield from check_workloads(spec.at("workloads"))
    yield from placement_problems(spec.at("placement"))
    yield from duration_problems(spec.at("budget", "per"), A_MINUTE_TO_A_WEEK)
    yield from duration_problems(spec.at("queue", "reserveAfter"), UP_TO_A_WEEK)
    yield from duration_problems(spec.at("queue", "reserveFor"), UP_TO_A_WEEK)
    yield from duration_problems(spec.at("queue", "gangTimeout"), SECONDS_TO_A_DAY)
