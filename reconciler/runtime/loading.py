# SPDX-License-Identifier: Apache-2.0
"""What this program compiles documents with, whoever asks: command line, webhook, reconciler."""

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from policies.cel import Environment
from policies.cel.environment import build_environment
from policies.documents.expression_cache import Expressions
from policies.documents.load import LoadResult, load
from policies.documents.source import SourceText
from policies.model.facts import NodeFacts
from policies.vendors import Catalog, build_catalog


class Compiler:
    """The shipped catalog and CEL environment; building them takes a moment, so once a process."""

    def __init__(self) -> None:
        self.catalog: Catalog = build_catalog()
        self.environment: Environment = build_environment()
        self._known: Expressions = {}
        self._lock = threading.Lock()

    def load(
        self,
        sources: Sequence[SourceText],
        now: datetime | None = None,
        nodes: Sequence[NodeFacts] | None = None,
    ) -> LoadResult:
        """Compile documents together, one load at a time. Never raises, whatever the texts.

        Where `now` is given, exemptions that have ended are among the problems; where `nodes` are,
        what they cannot bear out. Expressions that the load before has compiled are used again.
        """
        with self._lock, _uncollected():
            result = load(
                sources,
                catalog=self.catalog,
                environment=self.environment,
                now=now,
                known=self._known,
                nodes=nodes,
            )
            self._known = result.expressions
        return result


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from looking through a set that is being built.

    It would do so again and again, each time for longer, while reviews wait. What is built then
    lives as long as the set, and is let go by its reference counts.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
