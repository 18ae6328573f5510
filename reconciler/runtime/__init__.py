# SPDX-License-Identifier: Apache-2.0
"""What every Sluice process needs around its work: logs, metrics, the audit log, tasks."""
