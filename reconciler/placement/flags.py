# SPDX-License-Identifier: Apache-2.0
"""The flags of every command that may lead: telemetry, and what it places by.

Light to import, since every command line reads it. What the values mean is `settings`' matter.
"""

from typing import Final

import click

from reconciler.telemetry import flags as telemetry
from reconciler.telemetry.flags import Command, telemetry_options

PREFERRED_NODES: Final = "SLUICE_PREFERRED_NODES"
MOST_PREFERRED: Final = 20

FLAGS: Final = {**telemetry.FLAGS, "preferred_nodes": PREFERRED_NODES}
"""The variable of each flag; a flag that is given wins."""


def leader_options(command: Command) -> Command:
    """Add the options to a command."""
    option = click.option(
        "--preferred-nodes",
        type=click.IntRange(0, MOST_PREFERRED),
        help="How many of the best nodes a pod is told to prefer when it is released [0], for "
        f"clusters whose scheduler asks no extender; also ${PREFERRED_NODES}.",
    )
    return telemetry_options(option(command))
