# SPDX-License-Identifier: Apache-2.0
"""The quota controller on the real control plane."""
