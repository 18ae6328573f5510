# SPDX-License-Identifier: Apache-2.0
"""Shows how tenants stand: in the status of their objects, in metrics, and in the audit log."""
