# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane without containers, for tests and for trying Sluice out.

Binaries come from KUBEBUILDER_ASSETS, from a cache, or from `go build` with the modules pinned
here. `python -m tests.controlplane` builds and starts it from the shell.
"""

from tests.controlplane.binaries import find_binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import Options
from tests.controlplane.errors import (
    BuildError,
    ComponentError,
    ControlPlaneError,
    KubectlError,
)

__all__ = [
    "BuildError",
    "ComponentError",
    "ControlPlane",
    "ControlPlaneError",
    "KubectlError",
    "Options",
    "find_binaries",
]
