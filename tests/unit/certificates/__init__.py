# SPDX-License-Identifier: Apache-2.0
"""The leader's keeping of certificates."""
