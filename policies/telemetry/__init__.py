# SPDX-License-Identifier: Apache-2.0
"""What is known of cards while they work: samples with their own time, and what may be told of it.

Pure: where samples come from and what is decided by them must not be here.
"""
