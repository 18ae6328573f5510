# SPDX-License-Identifier: Apache-2.0
"""What must end so that a tenant below its guarantee gets it back. Pure: no I/O, no clock."""
