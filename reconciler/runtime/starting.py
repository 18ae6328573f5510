# SPDX-License-Identifier: Apache-2.0
"""Runs a process, and turns what a person can mend into one line and an exit code.

What a process consists of must not be here.
"""

import asyncio
import sys

import uvloop

from reconciler.kube.errors import AccessError
from reconciler.runtime.audit_file import AuditFileError
from reconciler.runtime.tasks import Activity


class StartError(Exception):
    """Why a process cannot start; the message says what to change."""


def run_or_exit(activity: Activity, *expected: type[Exception]) -> None:
    """Run an activity on uvloop; what a person can mend becomes a line and exit code 2.

    `expected` are errors beyond those that every process knows, with messages for people.
    """
    mendable: tuple[type[Exception], ...] = (StartError, AuditFileError, AccessError, *expected)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(activity)
    except mendable as error:
        sys.stderr.write(f"sluice: {error}\n")
        sys.exit(2)
    except OSError as error:
        sys.stderr.write(f"sluice: cannot listen: {error.strerror or error}\n")
        sys.exit(2)
