# SPDX-License-Identifier: Apache-2.0
"""Finds the control plane's binaries: in KUBEBUILDER_ASSETS, then in the cache, else builds them.

The cache lies outside the checkout (it holds half a gigabyte), in a folder named after the pinned
versions. How a program is built is not here.
"""

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane.errors import BuildError
from tests.controlplane.gobuild import build, check_go
from tests.controlplane.programs import CONTROL_PLANE, Kit, Program, cache_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Report = Callable[[str], None]


def find_binaries(
    environ: "Mapping[str, str]", report: "Report", kit: Kit = CONTROL_PLANE
) -> "Mapping[str, Path]":
    """Return the path of every program by name; `report` gets a line for each one that is built.

    Raises BuildError when one can be neither found nor built.
    """
    assets = _assets(environ)
    cache = cache_directory(environ, kit)
    if not _missing(kit, assets, cache):
        return _located(kit, assets, cache)
    _make(kit, cache)
    with _lock(cache.parent / f"{cache.name}.lock", report):
        # Another process may have built them while this one waited.
        _build_all(kit, cache, environ, report)
    return _located(kit, assets, cache)


def cache_directory(environ: "Mapping[str, str]", kit: Kit = CONTROL_PLANE) -> Path:
    """`${SLUICE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/sluice}/<kit>/<key>`; may not exist."""
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    user_cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    root = Path(environ.get("SLUICE_CACHE") or user_cache / "sluice")
    return root.absolute() / kit.name / cache_key(kit.modules)


def _assets(environ: "Mapping[str, str]") -> Path | None:
    named = environ.get("KUBEBUILDER_ASSETS")
    if not named:
        return None
    directory = Path(named).absolute()
    if not directory.is_dir():
        raise BuildError(f"KUBEBUILDER_ASSETS is {named}, which is not a directory")
    return directory


def _locate(program: Program, assets: Path | None, cache: Path) -> Path | None:
    for directory in (assets, cache):
        candidate = directory / program.name if directory else None
        if candidate and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _missing(kit: Kit, assets: Path | None, cache: Path) -> list[Program]:
    return [program for program in kit.programs if _locate(program, assets, cache) is None]


def _located(kit: Kit, assets: Path | None, cache: Path) -> "Mapping[str, Path]":
    found = {program.name: _locate(program, assets, cache) for program in kit.programs}
    return {name: path for name, path in found.items() if path is not None}


def _build_all(kit: Kit, cache: Path, environ: "Mapping[str, str]", report: "Report") -> None:
    missing = _missing(kit, _assets(environ), cache)
    if not missing:
        return
    go = check_go(environ, kit)
    for number, program in enumerate(missing, start=1):
        report(
            f"building {program.name} ({number}/{len(missing)}), "
            f"{_duration(program.cold_build_seconds)} on 2 cores, once, into {cache}"
        )
        build(go, program, cache / program.name, environ)


def _duration(seconds: int) -> str:
    minute = 60
    return f"about {round(seconds / minute)} min" if seconds > minute else f"about {seconds} s"


def _make(kit: Kit, cache: Path) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"the cache for the {kit.title}'s binaries cannot be made: {error}"
        ) from error


@contextmanager
def _lock(path: Path, report: "Report") -> "Iterator[None]":
    """Hold an advisory lock that dies with the process, so that two builds never run at once."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another process is building these binaries; waiting for {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
