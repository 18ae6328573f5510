# SPDX-License-Identifier: Apache-2.0
"""The reclaim controller: takes back what was lent when its owner waits for it."""
