# SPDX-License-Identifier: Apache-2.0
"""From what policy demands to the patch, and from a patched pod back to its original."""
