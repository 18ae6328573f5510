# SPDX-License-Identifier: Apache-2.0
"""The quota controller: decides which gated pods may go on, and takes their gates off."""
