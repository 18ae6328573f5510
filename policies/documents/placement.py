# SPDX-License-Identifier: Apache-2.0
"""How nodes are ranked, as a pool or the settings say it: from the field to the value."""

from collections.abc import Iterator
from typing import Final

from policies.documents.field import Field
from policies.documents.problems import Problem
from policies.model.placement import Spreading, SpreadSettings

_THOUSANDTHS: Final = 10
"""In a percent."""


def compile_placement(placement: Field) -> SpreadSettings | None:
    """Return what is said, with defaults for the rest; None where nothing is."""
    if not placement.exists:
        return None
    default = SpreadSettings()
    above = placement.at("spreadAbove").optional_integer()
    return SpreadSettings(
        strategy=Spreading(placement.at("strategy").text(default.strategy)),
        spread_above=default.spread_above if above is None else above * _THOUSANDTHS,
    )


def placement_problems(placement: Field) -> Iterator[Problem]:
    """Yield what the schema does not see: a bound that nobody heeds."""
    strategy, above = placement.at("strategy"), placement.at("spreadAbove")
    if above.exists and strategy.exists and strategy.text() != Spreading.AUTO:
        message = f"does nothing with strategy {strategy.text()}, which heeds no load"
        yield above.key_problem(message, f"take it away, or say `strategy: {Spreading.AUTO}`")
