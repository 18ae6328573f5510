# SPDX-License-Identifier: Apache-2.0
"""The leader keeps the certificates of an installed Sluice, in a cluster of its own."""
