# SPDX-License-Identifier: Apache-2.0
"""`sluice release`: takes gates off by force, whether Sluice runs or not."""
