# SPDX-License-Identifier: Apache-2.0
"""The alerts, one module for each thing that somebody is called for."""
