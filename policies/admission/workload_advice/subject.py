# SPDX-License-Identifier: Apache-2.0
"""What every advice is given, and what of a workload several of them read.

A workload is as somebody wrote it, and its own schema is not checked here: what has another type
than it should have reads as absent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policies.admission.context import Context
from policies.admission.workload_wording import Judged, Work
from policies.model.request import JsonObject
from policies.model.tenant import Tenant
from policies.model.workload import WorkloadKind

_JOB_CONTROLLER: Final = "system:serviceaccount:kube-system:job-controller"
_NOTHING: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True)
class Advised:
    """The workload, and its pods that will be gated, by template."""

    work: Work
    kind: WorkloadKind
    raw: JsonObject
    judged: Sequence["Gated"]


@dataclass(frozen=True, slots=True)
class Gated:
    """The pods of one template, which are let through to wait for their tenant's quota."""

    judged: Judged
    context: Context
    tenant: Tenant

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the pods."""
        return self.context.pod.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations of the pods."""
        return self.context.pod.annotations

    @property
    def job(self) -> Mapping[str, object]:
        """Return the spec of the batch/v1 Job around the template; empty if none is there."""
        template = self.judged.pods.template
        is_job = template.account == _JOB_CONTROLLER and template.path[-2:] == ("spec", "template")
        holder = self.judged.pods.holder
        return holder if is_job and isinstance(holder, dict) else _NOTHING


def gated(judged: Judged) -> Gated | None:
    """Return pods that will be gated; None for others, such as those that will be refused."""
    context = judged.context
    if context is None or context.tenant is None or not judged.decision.allowed:
        return None
    return Gated(judged, context, context.tenant) if judged.outcome.demand.gate else None


def whole(value: object) -> int | None:
    """Return a whole number that is not negative; None for anything else."""
    return value if type(value) is int and value >= 0 else None
