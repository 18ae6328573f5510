# SPDX-License-Identifier: Apache-2.0
"""The leader's telemetry: what nodes' cards hold, written into their annotations.

Only one process should write them, so it is a controller; who else samples does not write.
"""

from reconciler.leading import Leading


async def run_telemetry(leading: Leading) -> None:
    """Sample, and write what is no annotation yet, until cancelled; not at all without a source."""
    telemetry = leading.surroundings.telemetry
    if telemetry is None:
        return
    leading.newest.telemetry = telemetry.store.node
    await telemetry.run(writes=True)
