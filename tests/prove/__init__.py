# SPDX-License-Identifier: Apache-2.0
"""Proofs about quota on a real control plane, by an observer that shares no code with Sluice."""
