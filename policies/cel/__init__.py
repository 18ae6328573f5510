# SPDX-License-Identifier: Apache-2.0
"""CEL for policies: the one place that knows which engine evaluates."""

from policies.cel.environment import build_environment
from policies.cel.expression import (
    Environment,
    EvaluationError,
    Expression,
    ExpressionError,
    ExpressionProblem,
    ResultType,
    Scope,
)

__all__ = [
    "Environment",
    "EvaluationError",
    "Expression",
    "ExpressionError",
    "ExpressionProblem",
    "ResultType",
    "Scope",
    "build_environment",
]
