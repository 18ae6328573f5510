# SPDX-License-Identifier: Apache-2.0
"""Rules and dashboard on a real Prometheus."""
