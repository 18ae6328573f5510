# SPDX-License-Identifier: Apache-2.0
"""The HTTP shell around the policy core: admission reviews in, answers out, over TLS."""
