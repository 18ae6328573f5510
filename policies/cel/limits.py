# SPDX-License-Identifier: Apache-2.0
"""How much an expression may be, read and make; beyond it is an error, never a crash."""

from typing import Final

MAX_SOURCE_LENGTH: Final = 5_000
"""Code points of one expression."""

MAX_INPUT_BYTES: Final = 1 << 20
"""JSON of one variable of a review; the API server stores objects of at most 1.5 MiB."""

MAX_ITERATIONS: Final = 10_000
"""Loop steps of one evaluation, nested loops together; the engine's own limit."""
