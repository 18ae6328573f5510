# SPDX-License-Identifier: Apache-2.0
"""A GPU pod that names its node, and so passes by scheduler and quota.

Mirror pods of a kubelet do so by nature; they are told apart before this check, by who makes
them. Restricted: spec.nodeName on CREATE.
"""

from collections.abc import Iterable

from policies.admission.context import Context
from policies.model.decision import Violation
from policies.model.reasons import Reason
from policies.pod.reading import string_at


def check(context: Context) -> Iterable[Violation]:
    """Yield a violation if a GPU pod names its node."""
    node = string_at(context.pod.spec, "nodeName")
    if node and context.takes_gpus:
        yield Violation(
            Reason.NODE_NAME,
            f"spec.nodeName {node[:128]} passes by the scheduler: use a nodeSelector on "
            "kubernetes.io/hostname",
        )
