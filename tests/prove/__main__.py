# SPDX-License-Identifier: Apache-2.0
"""Proves that no ceiling is passed and no pod lost, whatever happens to Sluice under load.

Progress goes to standard error; the last line of output is JSON. Exits with 1 if anything is found.
`python -m tests.prove [--pods 2000] [--kills 30]`
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.machine import describe_machine
from tests.controlplane import ControlPlaneError, find_binaries
from tests.prove.driver import DriverError
from tests.prove.load import Extent
from tests.prove.proof import Report, prove


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all scenarios, print what was found and a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    for name, value in (
        ("pods", 2000),
        ("kills", 30),
        ("restarts", 2),
        ("freezes", 3),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep", type=Path, help="a directory for logs, which stays")
    options = vars(parser.parse_args(arguments))
    keep = options.pop("keep")
    try:
        with tempfile.TemporaryDirectory() as temporary:
            directory = keep or Path(temporary)
            directory.mkdir(parents=True, exist_ok=True)
            binaries = find_binaries(os.environ, _say)
            report = asyncio.run(prove(binaries, directory, Extent(**options)))
    except (ControlPlaneError, DriverError) as error:
        _say(str(error))
        return 2
    _print(report, options)
    return 0 if report.is_clean else 1


def _print(report: Report, options: dict[str, object]) -> None:
    for text in report.texts:
        _say(text)
    figures = {**report.figures, "extent": options, **describe_machine()}
    sys.stdout.write(json.dumps(figures) + "\n")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
