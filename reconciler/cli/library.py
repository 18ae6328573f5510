# SPDX-License-Identifier: Apache-2.0
"""`sluice library`: the ready-made policies, listed, shown and copied. It judges none of them.

They are package data of `policies.library`, one folder each, so a wheel has them too.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from policies.documents.problems import Problem, Severity, quoted
from policies.documents.suggest import did_you_mean
from reconciler.cli.inputs import BadInputError

_README = "README.md"
_POLICY = "policy.yaml"
_TESTS = "tests"


@dataclass(frozen=True, slots=True)
class LibraryPolicy:
    """One folder of the library: a page for its user, the policy, and its tests."""

    name: str
    folder: Traversable

    @property
    def readme(self) -> str:
        """Return the page for its user; the first line says what it does."""
        return (self.folder / _README).read_text(encoding="utf-8")

    @property
    def summary(self) -> str:
        """Return what it does, in one sentence."""
        return self.readme.partition("\n")[0]

    @property
    def policy(self) -> str:
        """Return the documents that are served."""
        return (self.folder / _POLICY).read_text(encoding="utf-8")

    def files(self) -> Iterator[tuple[Path, bytes]]:
        """Yield what is copied, with its place below the directory.

        The policy lies at the top, where `kubectl create configmap --from-file` finds it, and its
        tests below, where it does not.
        """
        yield Path(f"{self.name}.yaml"), (self.folder / _POLICY).read_bytes()
        yield from _tree(self.folder / _TESTS, Path(_TESTS, self.name))


def library() -> tuple[LibraryPolicy, ...]:
    """Return all policies of the library, by name."""
    root = resources.files("policies.library")
    folders = (folder for folder in root.iterdir() if (folder / _POLICY).is_file())
    return tuple(LibraryPolicy(f.name, f) for f in sorted(folders, key=lambda f: f.name))


def find(name: str) -> LibraryPolicy:
    """Return the policy of a name. Raises BadInputError with what may have been meant."""
    by_name = {policy.name: policy for policy in library()}
    if name in by_name:
        return by_name[name]
    hint = did_you_mean(name, by_name) or "`sluice library list` names them all"
    raise _bad(f"there is no library policy {quoted(name)}; {hint}")


def print_list(policies: Sequence[LibraryPolicy], console: Console) -> None:
    """Print a table: the name, and what it does."""
    table = Table("NAME", "WHAT IT DOES", box=None, pad_edge=False, header_style="bold")
    table.columns[0].no_wrap = True
    for policy in policies:
        table.add_row(policy.name, policy.summary)
    console.print(table, markup=False, highlight=False)


def copy(policy: LibraryPolicy, directory: Path) -> tuple[Path, ...]:
    """Write a policy and its tests below a directory, all or nothing, and return the files.

    Raises BadInputError where a file is there already or cannot be written.
    """
    files = [(directory / place, content) for place, content in policy.files()]
    taken = [path for path, _ in files if os.path.lexists(path)]
    if taken:
        raise BadInputError([_problem("is there already; nothing was copied", p) for p in taken])
    written: list[Path] = []
    for path, content in files:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:  # never over a file that has come since
                written.append(path)
                file.write(content)
        except OSError as error:
            for done in written:
                done.unlink(missing_ok=True)
            reason = (error.strerror or str(error)).lower()
            raise BadInputError([_problem(f"{reason}; nothing was copied", path)]) from error
    return tuple(written)


def _tree(folder: Traversable, place: Path) -> Iterator[tuple[Path, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _tree(entry, place / entry.name)
        else:
            yield place / entry.name, entry.read_bytes()


def _problem(message: str, path: Path) -> Problem:
    return Problem(Severity.ERROR, message, str(path))


def _bad(message: str) -> BadInputError:
    return BadInputError([Problem(Severity.ERROR, message)])
