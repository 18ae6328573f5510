# SPDX-License-Identifier: Apache-2.0
"""The directory that a control plane keeps its state in: a temporary one, or a chosen one."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

from tests.controlplane.errors import ControlPlaneError


class StateDirectory:
    """The directory of one running control plane; `release()` removes a temporary one."""

    def __init__(self, path: Path, lock: int, *, is_temporary: bool) -> None:
        self.path = path
        self.is_temporary = is_temporary
        self._lock = lock

    @classmethod
    def claim(cls, chosen: Path | None) -> Self:
        """Make (or take) the directory, empty of an earlier control plane's state.

        Raises ControlPlaneError if it cannot be made, or if another control plane runs there.
        """
        try:
            path = Path(chosen or tempfile.mkdtemp(prefix="control-plane-")).absolute()
            path.mkdir(parents=True, exist_ok=True)
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ControlPlaneError(f"the control plane cannot keep its state: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise ControlPlaneError(f"another control plane runs in {path}") from error
        # Its keys and users are new each time, so old objects would be a half-known cluster.
        shutil.rmtree(path / "etcd", ignore_errors=True)
        for log in path.glob("*.log"):
            log.unlink()
        return cls(path, lock, is_temporary=chosen is None)

    def release(self) -> None:
        """Give the directory up."""
        os.close(self._lock)
        if self.is_temporary:
            shutil.rmtree(self.path, ignore_errors=True)
