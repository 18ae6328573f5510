# SPDX-License-Identifier: Apache-2.0
"""Tests of what people see of nodes and cards."""
