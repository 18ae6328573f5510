# SPDX-License-Identifier: Apache-2.0
"""How much is tried: `SLUICE_HYPOTHESIS=deep` looks longer, with new examples each time."""

import os

from hypothesis import HealthCheck, settings

_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile(
    "quick", max_examples=100, deadline=None, derandomize=True, suppress_health_check=_CHECKS
)
settings.register_profile("deep", max_examples=1000, deadline=None, suppress_health_check=_CHECKS)
settings.load_profile(os.environ.get("SLUICE_HYPOTHESIS", "quick"))
