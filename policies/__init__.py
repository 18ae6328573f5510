# SPDX-License-Identifier: Apache-2.0
"""The pure core of Sluice: documents, CEL, sharing modes and `decide()`; no I/O, no clock."""
