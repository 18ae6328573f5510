# SPDX-License-Identifier: Apache-2.0
"""Tests of policies.documents: real YAML in, problems and values out."""
