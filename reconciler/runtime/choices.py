# SPDX-License-Identifier: Apache-2.0
"""Options with a few values: whoever mistypes one is told which was probably meant."""

import click

from policies.documents.suggest import closest


class Choice(click.Choice[str]):
    """One of several texts."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Return click's message, with the nearest value behind it if there is one."""
        message = super().get_invalid_choice_message(value, ctx)
        near = closest(str(value), self.choices)
        return message if near is None else f"{message} Did you mean {near!r}?"
