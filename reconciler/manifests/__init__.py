# SPDX-License-Identifier: Apache-2.0
"""Renders what Sluice needs in a cluster, for `kubectl apply` and for manifests/base."""
