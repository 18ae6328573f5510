# SPDX-License-Identifier: Apache-2.0
"""Sharing modes: one module each, listed in `policies.sharing.modes`."""
