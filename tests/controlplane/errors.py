# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a control plane. Every message is meant for the person who started it."""


class ControlPlaneError(Exception):
    """The control plane cannot be built, started or used."""


class BuildError(ControlPlaneError):
    """A program can be neither found nor built."""


class ComponentError(ControlPlaneError):
    """A component has died or stays unhealthy; the message ends with the end of its log."""


class KubectlError(ControlPlaneError):
    """kubectl exited with a failure that the caller did not ask to see."""
