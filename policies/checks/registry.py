# SPDX-License-Identifier: Apache-2.0
"""The checks that there are, in the order in which their violations are told."""

from collections.abc import Iterable
from typing import Protocol

from policies.admission.context import Context
from policies.checks import (
    device_annotations,
    device_variables,
    host_access,
    node_name,
    resource_claims,
)
from policies.model.decision import Violation


class Check(Protocol):
    """A way around GPU requests, and how to see it. The module docstring is its reference."""

    def check(self, context: Context) -> Iterable[Violation]:
        """Yield a violation for each place in the pod. Raises MalformedError."""
        ...


CHECKS: tuple[Check, ...] = (
    device_variables,
    device_annotations,
    host_access,
    node_name,
    resource_claims,
)


def run_checks(context: Context) -> tuple[Violation, ...]:
    """Return the violations of all checks, each once."""
    found = (violation for check in CHECKS for violation in check.check(context))
    return tuple(dict.fromkeys(found))
