# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus on loopback that scrapes what a test serves; it can be killed and started.

What is scraped, and what is asked of it, is the test's matter.
"""

import json
import os
import shutil
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.controlplane.binaries import find_binaries
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.processes import Command, Process, ProcessGroup
from tests.controlplane.programs import MONITORING

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Scraping:
    """How targets are scraped. `rules` are files of rules, `further` more `scrape_configs`."""

    interval: str = "1s"
    honor_labels: bool = True
    rules: tuple[Path, ...] = ()
    job: str = "dcgm-exporter"
    further: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class WebConfig:
    """How the server is reached: its `--web.config.file`, and who is let in by it.

    `tls` is of a client that is let in; with users a client without a password is not.
    Source: Prometheus, configuration/https.
    """

    content: Mapping[str, object]
    tls: ssl.SSLContext
    has_users: bool = False


def find_monitoring(
    environ: Mapping[str, str], report: Callable[[str], None]
) -> Mapping[str, Path]:
    """Return the paths of `prometheus` and `promtool`, built if need be. Raises BuildError."""
    return find_binaries(environ, report, MONITORING)


class PrometheusServer:
    """One server with its data in a folder that ends with it. Use as a context manager."""

    def __init__(
        self, program: Path, scraping: Scraping | None = None, web: WebConfig | None = None
    ) -> None:
        self._program = program
        self._web = web
        self._scraping = scraping or Scraping()
        self._directory = Path(tempfile.mkdtemp(prefix="sluice-prometheus-"))
        self._port = free_ports(1)[0]
        self._group: ProcessGroup | None = None
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """Its address, which stays the same over restarts."""
        scheme = "http" if self._web is None else "https"
        return f"{scheme}://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self.set_targets(())
        self._write_config()
        self._group = ProcessGroup((self._directory,))
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.end(_STOP_SECONDS)
        if self._group is not None:
            self._group.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def set_targets(self, targets: Sequence[str], labels: Mapping[str, str] | None = None) -> None:
        """Have these addresses (`127.0.0.1:9400`) scraped from now on, with these labels."""
        content = json.dumps([{"targets": list(targets), "labels": dict(labels or {})}])
        draft = self._directory / "targets.json.new"
        draft.write_text(content, encoding="utf-8")
        draft.replace(self._directory / "targets.json")

    def start(self) -> None:
        """Start it, with the data that it has; returns when it answers queries."""
        if self._group is None:
            raise RuntimeError("the server is not entered")
        arguments = (
            str(self._program),
            f"--config.file={self._directory / 'prometheus.json'}",
            f"--storage.tsdb.path={self._directory / 'data'}",
            f"--web.listen-address={HOST}:{self._port}",
            "--log.level=warn",
            *self._web_arguments(),
        )
        command = Command(
            "prometheus",
            arguments,
            self._port,
            "/-/ready",
            is_tls=self._web is not None,
            healthy_status=401 if self._web is not None and self._web.has_users else 200,
        )
        log = self._directory / "prometheus.log"
        self._process = Process.start(command, log, self._group, self._directory)
        tls = ssl.create_default_context() if self._web is None else self._web.tls
        self._process.wait_healthy(tls, "", _START_SECONDS)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()

    def _web_arguments(self) -> tuple[str, ...]:
        if self._web is None:
            return ()
        path = self._directory / "web.json"
        path.write_text(json.dumps(self._web.content), encoding="utf-8")
        return (f"--web.config.file={path}",)

    def _write_config(self) -> None:
        # JSON is YAML.
        config = {
            "global": {
                "scrape_interval": self._scraping.interval,
                "scrape_timeout": self._scraping.interval,
                "evaluation_interval": self._scraping.interval,
            },
            "rule_files": [os.fspath(path) for path in self._scraping.rules],
            "scrape_configs": [
                {
                    "job_name": self._scraping.job,
                    "honor_labels": self._scraping.honor_labels,
                    "file_sd_configs": [
                        {
                            "files": [os.fspath(self._directory / "targets.json")],
                            "refresh_interval": "1s",
                        }
                    ],
                },
                *self._scraping.further,
            ],
        }
        text = json.dumps(config)
        (self._directory / "prometheus.json").write_text(text, encoding="utf-8")
