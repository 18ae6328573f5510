# SPDX-License-Identifier: Apache-2.0
"""Tests of CEL: what loads, what it yields, and that nothing ends the process."""
