# SPDX-License-Identifier: Apache-2.0
"""Finds the policy documents below a directory, each once, however it is linked.

A mounted ConfigMap is changed by swapping its `..data` link, git-sync swaps the root itself: each
is resolved once per scan. What is in the files, and who watches them, is not known here.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policies.documents.problems import Problem, Severity

SUFFIXES: Final = (".yaml", ".yml", ".json")
_DATA_LINK: Final = "..data"
"""Source: Kubernetes pkg/volume/util/atomic_writer.go."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tree may hold, so that a wrong path (`/`) is an error and not an hour of reading."""

    depth: int = 64
    files: int = 10_000
    entries: int = 100_000
    file_bytes: int = 8 << 20
    total_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A document's name below the root, its place, and what tells that its content has changed."""

    name: str
    path: Path
    stamp: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """The documents of a tree in the order of their names, without their content.

    `directories` are those whose changes can change the next scan; for whoever watches.
    """

    documents: tuple[Found, ...]
    problems: tuple[Problem, ...]
    directories: frozenset[Path]


def scan(root: Path, limits: Limits) -> Scan:
    """Find every document below a directory, or take a single file. Never raises."""
    scanner = _Scanner(limits)
    try:
        scanner.root(root)
    except _ScanError as error:
        problem = file_problem(str(root), str(error))
        return Scan((), (problem,), frozenset(scanner.directories))
    if not scanner.found and not scanner.problems:
        patterns = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        scanner.problems.append(file_problem(str(root), f"holds no documents ({patterns})"))
    return Scan(
        tuple(sorted(scanner.found, key=lambda found: found.name)),
        tuple(scanner.problems),
        frozenset(scanner.directories),
    )


class _ScanError(Exception):
    """The tree is past a limit; nothing of it is used."""


class _Scanner:
    """One walk over the tree; each real file and directory counts once, however often linked."""

    def __init__(self, limits: Limits) -> None:
        self.found: list[Found] = []
        self.problems: list[Problem] = []
        self.directories: set[Path] = set()
        self._limits = limits
        self._seen: set[Path] = set()
        self._entries = 0

    def root(self, root: Path) -> None:
        """Start at a directory or at a single document, through any links."""
        try:
            self._watch_links(root)
            real = root.resolve(strict=True)
            is_directory = real.is_dir()
        except (OSError, RuntimeError) as error:
            self._fault(str(root), error)
            return
        if is_directory:
            self._directory(real, "", self._limits.depth)
        else:
            self.directories.add(real.parent)
            self._file(real, root.name)

    def _watch_links(self, root: Path) -> None:
        """Watch where each link on the way is, and where the root would appear."""
        for path in (root.absolute(), *root.absolute().parents):
            if path.is_symlink() or not path.exists():
                parent = next((p for p in path.parents if p.is_dir()), None)
                if parent is not None:
                    self.directories.add(parent.resolve())

    def _directory(self, real: Path, name: str, depth: int) -> None:
        if real in self._seen:
            return
        if depth == 0:
            raise _ScanError(f"holds directories more than {self._limits.depth} deep")
        self._seen.add(real)
        self.directories.add(real)
        payload = self._payload(real)
        if payload is not None:
            self._directory(payload, name, depth - 1)
        for entry in self._list(real, name):
            if payload is None or not _leads_into_data(entry):
                self._entry(entry, f"{name}/{entry.name}" if name else entry.name, depth - 1)

    def _payload(self, real: Path) -> Path | None:
        """Return what `..data` points to at this moment, where there is one."""
        link = real / _DATA_LINK
        try:
            payload = link.resolve(strict=True) if link.is_symlink() else None
            return payload if payload is not None and payload.is_dir() else None
        except (OSError, RuntimeError) as error:
            self._fault(str(link), error)
            return None

    def _list(self, real: Path, name: str) -> list[os.DirEntry[str]]:
        entries = []
        try:
            with os.scandir(real) as listing:
                for entry in listing:
                    self._entries += 1
                    if self._entries > self._limits.entries:
                        raise _ScanError(f"holds more than {self._limits.entries} entries")
                    if not entry.name.startswith("."):
                        entries.append(entry)
        except OSError as error:
            self._fault(name or str(real), error)
        return sorted(entries, key=lambda entry: entry.name)

    def _entry(self, entry: os.DirEntry[str], name: str, depth: int) -> None:
        try:
            is_directory = entry.is_dir()
            if not is_directory and not entry.name.lower().endswith(SUFFIXES):
                return
            real = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError) as error:
            self._fault(name, error)
            return
        if entry.is_symlink():
            self.directories.add(real.parent)
        if is_directory:
            self._directory(real, name, depth)
        else:
            self._file(real, name)

    def _file(self, real: Path, name: str) -> None:
        if real in self._seen:
            return
        self._seen.add(real)
        try:
            status = real.stat()
        except OSError as error:
            self._fault(name, error)
            return
        if not stat.S_ISREG(status.st_mode):
            self.problems.append(file_problem(name, "not a file"))
            return
        if len(self.found) == self._limits.files:
            raise _ScanError(f"holds more than {self._limits.files} documents")
        stamp = (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        self.found.append(Found(name, real, stamp))

    def _fault(self, name: str, error: OSError | RuntimeError) -> None:
        self.problems.append(file_problem(name, explain(error)))


def file_problem(name: str, message: str) -> Problem:
    """Return a problem of a whole file or directory."""
    return Problem(Severity.ERROR, message, file=name)


def explain(error: OSError | RuntimeError) -> str:
    """Return the reason alone. Python 3.12 and older raise RuntimeError for a loop of links."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "Symlink loop"


def _leads_into_data(entry: os.DirEntry[str]) -> bool:
    """Tell whether it is one of the links that a mounted volume shows its payload by."""
    try:
        return Path(entry.path).readlink().parts[:1] == (_DATA_LINK,)
    except OSError:
        return False
