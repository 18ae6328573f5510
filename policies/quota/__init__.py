# SPDX-License-Identifier: Apache-2.0
"""Quota arithmetic: what pods cost, who uses what, who may have more. No I/O, no clock."""
