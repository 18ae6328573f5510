# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard: what panels are, and one module for each part of the page."""
