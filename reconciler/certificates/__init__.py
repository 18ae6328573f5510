# SPDX-License-Identifier: Apache-2.0
"""Keeps the webhook's authority and certificate in Secrets, renews them, and has them trusted.

The leader issues; replicas of the webhook load what it has written; the API server learns from the
webhook configurations whom to trust. What others manage is left to them.
"""
