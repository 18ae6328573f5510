# SPDX-License-Identifier: Apache-2.0
"""Sluice end to end: installed in the real control plane, used through kubectl and the API."""
