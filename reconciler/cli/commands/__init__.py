# SPDX-License-Identifier: Apache-2.0
"""Commands that the root command imports when they are asked for."""
