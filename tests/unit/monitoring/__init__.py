# SPDX-License-Identifier: Apache-2.0
"""Tests of what Prometheus and Grafana are given."""
