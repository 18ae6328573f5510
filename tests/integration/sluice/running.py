# SPDX-License-Identifier: Apache-2.0
"""What an operator sees and changes of a running Sluice: probes, metrics, logs, documents."""

import http.client
import json
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from policies.documents.problems import has_errors
from reconciler.runtime.document_files import read_documents
from reconciler.runtime.loading import Compiler
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.ports import HOST
from tests.integration.sluice.objects import Json
from tests.integration.sluice.team import until

_SECONDS = 10.0


class Running:
    """An installed Sluice and the directory of documents that it follows."""

    def __init__(self, installed: InstalledSluice, policies: Path) -> None:
        self.installed = installed
        self.policies = policies

    def check(self) -> None:
        """Raise if its process has ended."""
        self.installed.check()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Have it stopped for a while, as a rollout stops it."""
        self.installed.stop()
        try:
            yield
        finally:
            self.installed.start()

    def readiness(self) -> Json:
        """Return /readyz as it is now."""
        return dict(json.loads(self._page("/readyz")))

    def condition(self, name: str) -> Json:
        """Return one condition of /readyz."""
        conditions: list[Json] = self.readiness()["conditions"]
        return next(condition for condition in conditions if condition["name"] == name)

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have these labels."""
        families = text_string_to_metric_families(self._page("/metrics"))
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def audit(self, namespace: str | None) -> list[Json]:
        """Return the audited decisions on a namespace's objects; None: on those of none."""
        text = self.installed.audit.read_text(encoding="utf-8")
        # Without the last piece: it is empty, or a line that is being written.
        records = [json.loads(line) for line in text.split("\n")[:-1]]
        reviews = [record for record in records if "kind" not in record]
        return [record for record in reviews if record["namespace"] == namespace]

    def audited(
        self, namespace: str | None, wanted: Callable[[Json], bool], count: int = 1
    ) -> list[Json]:
        """Wait for so many lines of the audit log, which is written behind the answers."""
        return until(
            lambda: (
                found if len(found := list(filter(wanted, self.audit(namespace)))) >= count else []
            ),
            f"{count} such lines of the audit log on {namespace}",
        )

    def log(self) -> str:
        """Return what the process has logged."""
        return self.installed.log.read_text(encoding="utf-8")

    def serves(self, generation: str) -> bool:
        """Tell whether this is the set that decides."""
        return self.metric("sluice_policy_set_info", generation=generation) == 1

    @property
    def is_broken(self) -> bool:
        """Tell whether the newest documents cannot be served."""
        return self.metric("sluice_policy_set_broken") == 1

    def write(self, name: str, text: str) -> None:
        """Replace a document in one step, as editors do."""
        path = self.policies / name
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)

    def follow(self) -> str:
        """Wait until the documents as they are now are what decides; return their generation."""
        generation = generation_of(self.policies)
        until(
            lambda: self.serves(generation) and not self.is_broken,
            f"generation {generation} being served",
        )
        return generation

    def _page(self, path: str) -> str:
        tls = ssl.create_default_context(cafile=os.fspath(self.installed.certificates / "ca.crt"))
        connection = http.client.HTTPSConnection(
            HOST, self.installed.port, timeout=_SECONDS, context=tls
        )
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()


@cache
def compiler() -> Compiler:
    """Return what loads documents; building it takes a moment."""
    return Compiler()


def generation_of(documents: Path) -> str:
    """Return the generation of a tree of good documents."""
    result: Any = compiler().load(read_documents(documents).sources)
    assert not has_errors(result.problems), result.problems
    return str(result.policy_set.generation)
