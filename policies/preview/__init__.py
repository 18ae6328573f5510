# SPDX-License-Identifier: Apache-2.0
"""What would become of a manifest: both passes, played through as the API server does."""
