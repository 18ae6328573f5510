# SPDX-License-Identifier: Apache-2.0
"""Ready-made policies to copy and change; data only, read by `sluice library`.

Each folder is one policy with its profiles, its tests and a page for its user. Nothing here is
served unless somebody copies it, and all of it works in one directory.
"""
