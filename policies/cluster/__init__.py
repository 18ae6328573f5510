# SPDX-License-Identifier: Apache-2.0
"""What nodes have, what pods ask of them, and whether the one could hold the other."""
