# SPDX-License-Identifier: Apache-2.0
"""Placement as a process is started with it: what flags say wins over the environment."""

import os
from collections.abc import Mapping

from reconciler.placement.settings import PlacementSettings, placement_from_environment
from reconciler.runtime.starting import StartError


def placement_of(flags: Mapping[str, str]) -> PlacementSettings:
    """Return what flags (by the variables that say the same) and environment ask for.

    Raises StartError, naming the variable.
    """
    try:
        return placement_from_environment({**os.environ, **flags})
    except ValueError as error:
        raise StartError(str(error)) from error
