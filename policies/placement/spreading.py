# SPDX-License-Identifier: Apache-2.0
"""Whether some nodes are filled up or pods kept apart on them, by the load of these nodes."""

from policies.model.placement import Spreading, SpreadSettings


class Spreader:
    """Chooses for nodes that go together.

    Mutable: it has their loads, and which of two bounds counts depends on the last choice.
    """

    def __init__(self, settings: SpreadSettings) -> None:
        self.settings = settings
        self._loads: dict[str, int] = {}
        self._total = 0
        self._spreads = settings.strategy is Spreading.SPREAD

    def put_load(self, name: str, load: int | None) -> None:
        """Take the load of a node in thousandths, None where it is not known, or is no node's."""
        self._total -= self._loads.pop(name, 0)
        if load is not None:
            self._loads[name] = load
            self._total += load

    def clear(self) -> None:
        """Forget all nodes, and not the last choice."""
        self._loads.clear()
        self._total = 0

    def spreads(self) -> bool:
        """Tell whether pods are kept apart now; while no load is known the last choice holds."""
        if self.settings.strategy is Spreading.AUTO and self._loads:
            self._spreads = self._total // len(self._loads) >= self._bound()
        return self._spreads

    def _bound(self) -> int:
        above = self.settings.spread_above
        # A small bound must not have it spread for ever.
        return max(above - self.settings.slack, above // 2) if self._spreads else above
