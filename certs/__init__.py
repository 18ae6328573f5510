# SPDX-License-Identifier: Apache-2.0
"""Certificates for the webhook: issue, verify, keep in files. Knows nothing of Kubernetes."""
