# SPDX-License-Identifier: Apache-2.0
"""What a Prometheus computes and alerts on, and what a Grafana shows: values only, no I/O."""
