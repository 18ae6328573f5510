# SPDX-License-Identifier: Apache-2.0
"""Kind `GPUPool`: from the document to the value."""

from collections.abc import Iterator

from policies.documents.compiled import Compiled
from policies.documents.field import Field, Subject
from policies.documents.labels import compile_selector, selector_problems
from policies.documents.placement import compile_placement, placement_problems
from policies.documents.problems import Problem, Severity
from policies.model.labels import Operator
from policies.model.pool import Pool
from policies.vendors.nvidia import PRODUCT_LABEL, model_of


def compile_pool(subject: Subject) -> Compiled[Pool]:
    """Return the pool."""
    root = subject.root
    selector, placement = root.at("spec", "nodes", "selector"), root.at("spec", "placement")
    pool = Pool(
        name=root.at("metadata", "name").text(),
        nodes=compile_selector(selector),
        release_without_nodes=root.at("spec", "releaseWithoutNodes").boolean(),
        placement=compile_placement(placement),
    )
    problems = (*_problems(selector, pool), *placement_problems(placement))
    return Compiled(pool, root, problems)


def _problems(selector: Field, pool: Pool) -> Iterator[Problem]:
    yield from selector_problems(selector)
    if selector.exists and not pool.nodes.expressions:
        message = "an empty selector selects every node: nothing is left for the default pool"
        yield selector.problem(message, severity=Severity.WARNING)
    for expression in pool.nodes.expressions:
        if expression.key == PRODUCT_LABEL and expression.operator is Operator.IN:
            yield from _without_sharing(selector, expression.values)


def _without_sharing(selector: Field, products: tuple[str, ...]) -> Iterator[Problem]:
    """Tell of nodes that leave the pool as soon as their GPUs are shared."""
    labels = [f"{product}-SHARED" for product in products if product == model_of(product)]
    missing = [label for label in labels if label not in products]
    if missing:
        message = f"nodes whose GPUs are shared may be {missing[0]}, and then leave the pool"
        hint = "list that product too, or select by a label of your own"
        yield selector.problem(message, hint, Severity.NOTE)
