# SPDX-License-Identifier: Apache-2.0
"""Which node a pod is best put on: its cards, what it would leave of them, and the one winner."""
