# SPDX-License-Identifier: Apache-2.0
"""A Job's deadline, which runs while its pods wait for quota.

Source: batch/v1 JobSpec counts activeDeadlineSeconds from the Job's start, core/v1 PodSpec from the
pod's, which the kubelet sets. A gated Job was seen to end with DeadlineExceeded.
"""

from collections.abc import Iterator

from policies.admission.workload_advice.subject import Advised, Gated, whole


def deadline(_: Advised, found: Gated) -> Iterator[str]:
    """Advise to limit the time of pods, not that of the Job."""
    seconds = whole(found.job.get("activeDeadlineSeconds"))
    if seconds is not None:
        yield (
            f"activeDeadlineSeconds {seconds} runs while its pods wait for quota: set it in the "
            "pod template, where it counts from a pod's start"
        )
