# SPDX-License-Identifier: Apache-2.0
"""The commands of `sluice` by what they are for, and those that stand in modules of their own."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

import click

from policies.documents.suggest import closest

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "On your machine": ("review", "lint", "test", "library", "demo"),
    "To install it": ("certs", "manifests"),
    "In the cluster": ("run", "serve", "reconcile", "extender"),
    "To look at it": ("tenants", "explain", "usage", "nodes", "map"),
    "In an emergency, and to take it out": ("release",),
}
"""What --help shows, in its order; a command of no group comes last, so that none is hidden."""

LATER: Final[Mapping[str, str]] = {
    "certs": "reconciler.cli.commands.certs",
    "extender": "webhook.extender.command",
    "explain": "reconciler.cli.commands.visibility",
    "library": "reconciler.cli.commands.library",
    "lint": "reconciler.cli.commands.desk",
    "manifests": "reconciler.cli.commands.manifests",
    "map": "reconciler.cli.commands.placement:card_map",
    "nodes": "reconciler.cli.commands.placement",
    "reconcile": "reconciler.cli.commands.reconcile",
    "release": "reconciler.cli.commands.release",
    "review": "reconciler.cli.commands.desk",
    "tenants": "reconciler.cli.commands.visibility",
    "test": "reconciler.cli.commands.desk",
    "usage": "reconciler.cli.commands.visibility",
}
"""Commands that stand in modules of their own, imported when they are asked for.

After a colon stands what a command is called there, if not by its name.
"""

_OTHERS: Final = "Others"
_MARGIN: Final = 6
"""What stands left of and between the two columns."""


class LateGroup(click.Group):
    """The root command, which knows the commands of `LATER` by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, by groups."""
        return [name for _, names in self.groups(ctx) for name in names]

    def groups(self, ctx: click.Context) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the groups, each with its heading, and last what is in none."""
        known = {*super().list_commands(ctx), *LATER}
        for heading, names in GROUPS.items():
            yield heading, tuple(name for name in names if name in known)
        if others := known.difference(*GROUPS.values()):
            yield _OTHERS, tuple(sorted(others))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name."""
        if cmd_name not in LATER:
            return super().get_command(ctx, cmd_name)
        module, _, name = LATER[cmd_name].partition(":")
        found: click.Command = getattr(import_module(module), name or cmd_name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for; click itself knows too few to suggest one."""
        name = args[0]
        is_option = not name[:1].isalnum()
        if not (is_option or ctx.resilient_parsing) and self.get_command(ctx, name) is None:
            near = closest(name, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {near!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by groups, each with the begin of its help."""
        width = formatter.width - _MARGIN - max(map(len, self.list_commands(ctx)))
        for heading, names in self.groups(ctx):
            found = ((name, self.get_command(ctx, name)) for name in names)
            rows = [(name, each.get_short_help_str(width)) for name, each in found if each]
            with formatter.section(heading):
                formatter.write_dl(rows)
