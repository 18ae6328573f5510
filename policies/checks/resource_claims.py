# SPDX-License-Identifier: Apache-2.0
"""Devices through resource claims, whose class a pod does not tell: refused for now.

Restricted: spec.resourceClaims.
"""

from collections.abc import Iterable

from policies.admission.context import Context
from policies.model.decision import Violation
from policies.model.reasons import Reason
from policies.pod.reading import objects_at


def check(context: Context) -> Iterable[Violation]:
    """Yield a violation if the pod uses any claim."""
    if objects_at(context.pod.spec, "resourceClaims"):
        yield Violation(
            Reason.CLAIMS_UNSUPPORTED,
            "spec.resourceClaims may give GPUs that no policy saw: ask for nvidia.com/gpu under "
            "resources.limits",
        )
