# SPDX-License-Identifier: Apache-2.0
"""Cases of every alert, one module for each thing that they are about."""
