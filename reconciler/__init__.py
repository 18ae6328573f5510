# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes shell and its controllers; what they decide is in `policies` and plan modules."""
