# SPDX-License-Identifier: Apache-2.0
"""Decides which waiting pods are released, in which order, and says why the others wait."""
