# SPDX-License-Identifier: Apache-2.0
"""A fake API server and a client of it."""

from tests.unit.kube.conftest import client, fake

__all__ = ["client", "fake"]
