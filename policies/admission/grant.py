# SPDX-License-Identifier: Apache-2.0
"""What a container is given for the devices that it asks for."""

from dataclasses import dataclass

from policies.model.policy import Policy
from policies.model.profile import Profile, Strength
from policies.pod.asked import Asked
from policies.vendors import GpuName


@dataclass(frozen=True, slots=True)
class Grant:
    """One container's devices of one name: what is given for them, and by which policy.

    `policy` is None for a share that was asked for by its own name, and for one that is exempt.
    `limiter` is the policy that would have given a form in the place of a share asked for by name.
    `need_mib` is what the container states to need on each GPU, where the policy fits to it.
    """

    asked: Asked
    name: GpuName
    count: int
    profile: Profile
    policy: Policy | None
    need_mib: int | None = None
    limiter: Policy | None = None

    @property
    def limiting_policy(self) -> Policy | None:
        """Return the policy whose memory limit holds: that of a share asked for by name, too."""
        return self.policy or self.limiter

    @property
    def strength(self) -> Strength:
        """Return how hard the memory limit is: a library on the node limits only where it is told.

        Hardware and the MPS daemon limit by themselves.
        """
        is_told = self.policy is not None and self.policy.memory_limit is not None
        return self.profile.strength if self.profile.limiter is None or is_told else Strength.NONE
