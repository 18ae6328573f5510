# SPDX-License-Identifier: Apache-2.0
"""Which engine evaluates: the one place that chooses."""

from policies.cel.expr_engine import ExprEnvironment
from policies.cel.expression import Environment


def build_environment() -> Environment:
    """Return the environment of all expressions."""
    return ExprEnvironment()
