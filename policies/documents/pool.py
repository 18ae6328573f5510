# SPDX-License-Identifier: Apache-2.0
"""Kind `GPUPool`: from the document to the value."""

from collections.abc import Iterator

from policies.documents.compiled import Compiled
from policies.documents.field import Field, Subject
from policies.documents.labels import compile_selector, selector_problems
from policies.documents.problems import Problem, Severity
from policies.model.pool import Pool


def compile_pool(subject: Subject) -> Compiled[Pool]:
    """Return the pool."""
    root = subject.root
    selector = root.at("spec", "nodes", "selector")
    pool = Pool(
        name=root.at("metadata", "name").text(),
        nodes=compile_selector(selector),
        release_without_nodes=root.at("spec", "releaseWithoutNodes").boolean(),
    )
    return Compiled(pool, root, tuple(_problems(selector, pool)))


def _problems(selector: Field, pool: Pool) -> Iterator[Problem]:
    yield from selector_problems(selector)
    if selector.exists and not pool.nodes.expressions:
        message = "an empty selector selects every node: nothing is left for the default pool"
        yield selector.problem(message, severity=Severity.WARNING)
