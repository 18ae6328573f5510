# SPDX-License-Identifier: Apache-2.0
"""Keeps a model of nodes and the pods on them true to the cluster, for all who ask it."""
