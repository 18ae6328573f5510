# SPDX-License-Identifier: Apache-2.0
"""What `sluice release` says: what it is about to do, how far it is, what came of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from reconciler.cli.release.actuate import Result
from reconciler.cli.release.pods import GatedPod, by_namespace
from reconciler.cli.release.run import Tally

_MOST_NAMESPACES: Final = 10
_MOST_FAILURES: Final = 20
_WEBHOOK: Final = "failed calling webhook"


def announcement(pods: Sequence[GatedPod], *, dry_run: bool) -> str:
    """Return what is about to be done."""
    counts = by_namespace(pods)
    shown = ", ".join(f"{name} {count}" for name, count in counts[:_MOST_NAMESPACES])
    more = f" and {len(counts) - _MOST_NAMESPACES} more" if len(counts) > _MOST_NAMESPACES else ""
    begin = "would take" if dry_run else "about to take"
    return (
        f"{begin} Sluice's gate off {_pods(len(pods))} in {_namespaces(len(counts))},"
        f" whatever quota says: {shown}{more}"
    )


@contextmanager
def progress(console: Console) -> Iterator[Callable[[int, int], None]]:
    """Show how many are done of how many; a console that is no terminal is told at the end."""
    columns = (TextColumn("releasing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as shown:
        task = shown.add_task("releasing", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def conclusion(tally: Tally, *, dry_run: bool) -> str:
    """Return what came of it, in one line."""
    begin = "would release" if dry_run else "released"
    parts = [f"{begin} {_pods(tally.released)}"]
    if tally.gone:
        parts.append(f"{tally.gone} had gone or been released meanwhile")
    if tally.left:
        whose = "its" if len(tally.left) == 1 else "their"
        parts.append(f"{_pods(len(tally.left))} kept {whose} gate")
    if tally.unseen:
        verb = "has" if tally.unseen == 1 else "have"
        parts.append(f"{_pods(tally.unseen)} {verb} come since: run it again")
    return ", ".join(parts)


def failures(left: Sequence[Result]) -> Iterator[str]:
    """Yield why pods kept their gate, the first of them, and what to do about it."""
    for result in left[:_MOST_FAILURES]:
        yield f"error: {result.pod.namespace}/{result.pod.name}: {result.message}"
    if len(left) > _MOST_FAILURES:
        yield f"error: and {len(left) - _MOST_FAILURES} more; the audit log has all of them"
    if any(_WEBHOOK in result.message for result in left):
        yield (
            "A webhook that must be asked does not answer. If it is Sluice's own, its configuration"
            " in the cluster is older than this command: take it away first, by `kubectl delete"
            " validatingwebhookconfiguration sluice`, and run this again."
        )


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"


def _namespaces(count: int) -> str:
    return f"{count} namespace{'' if count == 1 else 's'}"
