# SPDX-License-Identifier: Apache-2.0
"""What no GPU pod may do, whatever its policy: one module a check, listed in `registry`."""
