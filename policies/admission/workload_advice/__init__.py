# SPDX-License-Identifier: Apache-2.0
"""What quota does to a workload's own settings, told to the person who applies it.

One module for each advice, all listed in `registry`. They look at pods that will wait behind the
gate; what becomes of each pod is told elsewhere. Advice never refuses anything.
"""
