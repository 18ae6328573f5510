# SPDX-License-Identifier: Apache-2.0
"""How much an expression may be, read and make; beyond it is an error, never a crash."""

from typing import Final

MAX_SOURCE_LENGTH: Final = 5_000
"""Code points of one expression."""

MAX_DEPTH: Final = 32
"""Levels of nesting in an expression, each variable that it uses being one; the engine's limit."""

MAX_OPTIONAL_MAPS: Final = 8
"""`optMap` and `optFlatMap` in one expression: each repeats what it is called on when parsed."""

MAX_INPUT_BYTES: Final = 1 << 20
"""JSON of one variable of a review; the API server stores objects of at most 1.5 MiB."""

MAX_ITERATIONS: Final = 10_000
"""Loop steps of one evaluation, nested loops together; the engine's own limit."""

MAX_UNITS: Final = 1_000_000
"""Characters and list elements that one evaluation may make, and 16 comparisons each."""

MAX_COPIES: Final = 10_000
"""How often one value may stand inside another that an expression builds, loops at 50 steps."""
