# SPDX-License-Identifier: Apache-2.0
"""Where samples of cards come from, and where what is known of cards is kept for all who ask.

What samples mean is decided in policies.telemetry.
"""
