# SPDX-License-Identifier: Apache-2.0
"""What policy demands of a pod, before it is put onto one."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Demand:
    """The end state of what Sluice owns in a pod. The empty demand takes all of it away.

    `resources` holds, by container, every GPU-like resource that it shall have; containers not in
    it keep their original. `env` holds variables by container; `labels` are of Sluice's own keys.
    JSON parts are as they stand in a pod.
    """

    resources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Mapping[str, object], ...] = ()
    tolerations: tuple[Mapping[str, object], ...] = ()
    anti_affinity: tuple[Mapping[str, object], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    gate: bool = False


NOTHING = Demand()
