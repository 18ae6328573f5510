# SPDX-License-Identifier: Apache-2.0
"""A cluster to which anything may happen, its leaders, and the laws that must hold all the same."""
