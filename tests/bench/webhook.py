# SPDX-License-Identifier: Apache-2.0
"""`make bench-webhook`: reviews per second of Sluice beside a bare server that does nothing else.

Both serve from the same core, the load comes from another; their rounds alternate, so that what
else the machine does hits both. Ends with one line of JSON.
"""

import argparse
import base64
import http.client
import json
import ssl
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from certs.files import ensure
from certs.names import LOOPBACK
from tests.bench.machine import describe_machine
from tests.bench.pods import gpu_review
from tests.bench.processes import BenchError, Server, cores, free_port, run, started

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Round:
    """What one server did in one round; CPU time is that of all its threads."""

    reviews_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us_per_review: float


@dataclass(frozen=True, slots=True)
class Load:
    """How much is sent: connections at a time, seconds a round, rounds."""

    connections: int
    seconds: float
    rounds: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table and a line of JSON; return 1 if Sluice is below `--require`."""
    options = _parser().parse_args(arguments)
    load = Load(options.connections, options.seconds, options.rounds)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            rounds = _measure(Path(temporary), load)
        except BenchError as error:
            sys.stderr.write(f"{error}\n")
            return 2
    report = _report(rounds, load)
    _print(report)
    return int(report["ratio"] < options.require)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.webhook", description=__doc__)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--require", type=float, default=0.0, help="least ratio to succeed with")
    return parser


def _measure(directory: Path, load: Load) -> dict[str, list[Round]]:
    rounds: dict[str, list[Round]] = {"bare": [], "sluice": []}
    with _servers(directory) as servers:
        for server in servers:
            _check_answer(server, directory / "ca.crt")
            warm_up = Load(load.connections, min(1.0, load.seconds), rounds=1)
            _round(server, directory / "ca.crt", warm_up)
        for number in range(load.rounds):
            for server in servers:
                found = _round(server, directory / "ca.crt", load)
                rounds[server.name].append(found)
                sys.stdout.write(
                    f"round {number + 1} {server.name:7} {found.reviews_per_second:8.0f} reviews/s"
                    f"  p50 {found.p50_ms:6.2f} ms  p99 {found.p99_ms:6.2f} ms"
                    f"  cpu {found.cpu_us_per_review:6.1f} us\n"
                )
                sys.stdout.flush()
        _check_audit(directory / "audit.jsonl")
    return rounds


@contextmanager
def _servers(directory: Path) -> Iterator[tuple[Server, Server]]:
    """Run both servers on the first core, with the same certificate."""
    files = ensure(directory, LOOPBACK, datetime.now(UTC))
    core, _ = cores()
    bare_port, sluice_port = free_port(), free_port()
    bare = ("-m", "tests.bench.bare", files.certificate, files.key, bare_port)
    sluice = (
        *("sluice.py", "serve", "--policies", HERE / "policies", "--facts", HERE / "facts.yaml"),
        *("--certificates", directory, "--host", "127.0.0.1", "--port", sluice_port),
        *("--audit", directory / "audit.jsonl", "--grace", 0, "--log-level", "warning"),
    )
    with ExitStack() as stack:
        yield (
            stack.enter_context(started("bare", core, bare_port, *bare)),
            stack.enter_context(started("sluice", core, sluice_port, *sluice)),
        )


def _round(server: Server, ca: Path, load: Load) -> Round:
    _, core = cores()
    before = server.cpu_seconds()
    program = ("-m", "tests.bench.load", ca, server.port, load.connections, load.seconds)
    found = json.loads(run(core, *program))
    if found["failures"]:
        raise BenchError(f"{server.name}: {found['failures']} reviews were not answered with 200")
    cpu = server.cpu_seconds() - before
    return Round(
        reviews_per_second=found["reviews"] / found["seconds"],
        p50_ms=found["p50_ms"],
        p99_ms=found["p99_ms"],
        cpu_us_per_review=1e6 * cpu / found["reviews"],
    )


def _check_answer(server: Server, ca: Path) -> None:
    """Make sure that the right thing is measured: Sluice rewrites, three policies match."""
    context = ssl.create_default_context(cafile=str(ca))
    connection = http.client.HTTPSConnection("localhost", server.port, context=context)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/mutate?timeout=10s", gpu_review(), headers)
    response: dict[str, Any] = json.loads(connection.getresponse().read())["response"]
    connection.close()
    if not response["allowed"]:
        raise BenchError(f"{server.name} refused the pod: {response['status']['message']}")
    if server.name == "sluice":
        patch = json.loads(base64.b64decode(response["patch"]))
        if not any("nvidia.com/gpu.shared" in json.dumps(operation) for operation in patch):
            raise BenchError("sluice did not rewrite the pod")


def _check_audit(path: Path) -> None:
    with path.open(encoding="utf-8") as lines:
        first = json.loads(next(lines))
    if first["matched"] != ["inference", "containers", "everyone"]:
        raise BenchError(f"these policies matched: {first['matched']}")


def _report(rounds: dict[str, list[Round]], load: Load) -> dict[str, Any]:
    """Return medians over the rounds; the ratios are medians of each round's own ratio."""
    pairs = list(zip(rounds["sluice"], rounds["bare"], strict=True))
    return {
        "bench": "webhook",
        **{name: _median(found) for name, found in rounds.items()},
        "ratio": statistics.median(s.reviews_per_second / b.reviews_per_second for s, b in pairs),
        "cpu_ratio": statistics.median(b.cpu_us_per_review / s.cpu_us_per_review for s, b in pairs),
        "review_bytes": len(gpu_review()),
        **asdict(load),
        **describe_machine(),
    }


def _median(rounds: list[Round]) -> dict[str, float]:
    names = Round.__dataclass_fields__
    return {name: statistics.median(getattr(found, name) for found in rounds) for name in names}


def _print(report: dict[str, Any]) -> None:
    sys.stdout.write("\n| server | reviews/s | p50 ms | p99 ms | CPU us per review |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- |\n")
    for name in ("bare", "sluice"):
        found = report[name]
        sys.stdout.write(
            f"| {name} | {found['reviews_per_second']:.0f} | {found['p50_ms']:.2f} "
            f"| {found['p99_ms']:.2f} | {found['cpu_us_per_review']:.0f} |\n"
        )
    sys.stdout.write(
        f"\nSluice has {report['ratio']:.2f} of the bare server's throughput "
        f"({report['cpu_ratio']:.2f} by CPU time)\n"
    )
    sys.stdout.write(json.dumps(_rounded(report)) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
