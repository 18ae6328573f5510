# SPDX-License-Identifier: Apache-2.0
"""`sluice library`: ready-made policies."""

from pathlib import Path

import click

from reconciler.cli.terminal import stop


@click.group()
def library() -> None:
    """Ready-made policies, to copy into your own and to change.

    \b
    Examples:
      sluice library list
      sluice library show training-exclusive
      sluice library copy training-exclusive policies/
    """


@library.command("list")
def library_list() -> None:
    """List the policies by name, with what each does."""
    from rich.console import Console

    from reconciler.cli.library import library as everything
    from reconciler.cli.library import print_list

    print_list(everything(), Console())


@library.command("show")
@click.argument("name")
def library_show(name: str) -> None:
    """Print a policy's page and its documents."""
    from reconciler.cli.inputs import BadInputError
    from reconciler.cli.library import find

    try:
        found = find(name)
    except BadInputError as error:
        stop(error)
    click.echo(found.readme)
    click.echo(found.policy, nl=False)


@library.command("copy")
@click.argument("name")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def library_copy(name: str, directory: Path) -> None:
    """Copy a policy and its tests into a directory; a file that is there already stays.

    `sluice lint` and `sluice test` work there at once. What is below tests/ is for them alone.

    \b
    Examples:
      sluice library copy mig-by-memory policies/
      sluice test policies/
    """
    from reconciler.cli.inputs import BadInputError
    from reconciler.cli.library import copy, find

    try:
        written = copy(find(name), directory)
    except BadInputError as error:
        stop(error)
    for path in written:
        click.echo(f"wrote {path}")
