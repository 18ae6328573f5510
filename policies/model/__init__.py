# SPDX-License-Identifier: Apache-2.0
"""The values that the core speaks in: frozen dataclasses and enumerations."""
