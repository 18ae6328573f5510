# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes API as the rest of Sluice sees it: client, watches, and what they have shown.

No decision of Sluice is taken here.
"""
