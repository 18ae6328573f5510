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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from certs.files import ensure
from certs.names import LOOPBACK
from tests.bench.load import Load
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
class Case:
    """What is measured: a server, and how many different pods it is sent.

    One pod stands for the replicas of one workload; with very many, no two decisions are alike.
    """

    name: str
    server: str
    pods: int


CASES: Final = (
    Case("bare", "bare", 1),
    Case("sluice", "sluice", 1),
    Case("sluice_different_pods", "sluice", 4000),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table and a line of JSON; return 1 if Sluice is below `--require`."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            rounds = _measure(Path(temporary), options)
        except BenchError as error:
            sys.stderr.write(f"{error}\n")
            return 2
    report = _report(rounds)
    _print(report | {"connections": options.connections, "seconds": options.seconds})
    return int(report["ratio"] < options.require)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.webhook", description=__doc__)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--require", type=float, default=0.0, help="least ratio to succeed with")
    return parser


def _measure(directory: Path, options: argparse.Namespace) -> dict[str, list[Round]]:
    rounds: dict[str, list[Round]] = {case.name: [] for case in CASES}
    ca = directory / "ca.crt"
    with _servers(directory) as servers:
        for server in servers.values():
            _check_answer(server, ca)
        for case in CASES:  # to warm up
            _round(servers[case.server], ca, Load(options.connections, 0.5, case.pods))
        for number in range(options.rounds):
            for case in CASES:
                load = Load(options.connections, options.seconds, case.pods)
                found = _round(servers[case.server], ca, load)
                rounds[case.name].append(found)
                sys.stdout.write(f"round {number + 1}  {_line(case.name, found)}\n")
                sys.stdout.flush()
        _check_audit(directory / "audit.jsonl")
    return rounds


def _line(name: str, found: Round) -> str:
    return (
        f"{name:22} {found.reviews_per_second:6.0f} reviews/s  p50 {found.p50_ms:6.2f} ms"
        f"  p99 {found.p99_ms:6.2f} ms  cpu {found.cpu_us_per_review:6.1f} us"
    )


@contextmanager
def _servers(directory: Path) -> Iterator[dict[str, Server]]:
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
        yield {
            "bare": stack.enter_context(started("bare", core, bare_port, *bare)),
            "sluice": stack.enter_context(started("sluice", core, sluice_port, *sluice)),
        }


def _round(server: Server, ca: Path, load: Load) -> Round:
    _, core = cores()
    before = server.cpu_seconds()
    program = ("-m", "tests.bench.load", ca, server.port)
    found = json.loads(run(core, *program, load.connections, load.seconds, load.pods))
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


def _report(rounds: dict[str, list[Round]]) -> dict[str, Any]:
    """Return medians over the rounds; a ratio is the median of each round's own."""
    return {
        "bench": "webhook",
        **{name: _median(found) for name, found in rounds.items()},
        "ratio": _ratio(rounds, "sluice"),
        "ratio_different_pods": _ratio(rounds, "sluice_different_pods"),
        "review_bytes": len(gpu_review()),
        "rounds": len(rounds["bare"]),
        **describe_machine(),
    }


def _median(rounds: list[Round]) -> dict[str, float]:
    names = Round.__dataclass_fields__
    return {name: statistics.median(getattr(found, name) for found in rounds) for name in names}


def _ratio(rounds: dict[str, list[Round]], name: str) -> float:
    pairs = zip(rounds[name], rounds["bare"], strict=True)
    return statistics.median(
        sluice.reviews_per_second / bare.reviews_per_second for sluice, bare in pairs
    )


def _print(report: dict[str, Any]) -> None:
    sys.stdout.write("\n| server | reviews/s | p50 ms | p99 ms | CPU us per review |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- |\n")
    for case in CASES:
        found = report[case.name]
        sys.stdout.write(
            f"| {case.name} | {found['reviews_per_second']:.0f} | {found['p50_ms']:.2f} "
            f"| {found['p99_ms']:.2f} | {found['cpu_us_per_review']:.0f} |\n"
        )
    sys.stdout.write(
        f"\nof the bare server's throughput Sluice has {report['ratio']:.2f} on replicas of one "
        f"pod and {report['ratio_different_pods']:.2f} on pods that are all different\n"
    )
    sys.stdout.write(json.dumps(_rounded(report)) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
