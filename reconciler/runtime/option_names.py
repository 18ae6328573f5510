# SPDX-License-Identifier: Apache-2.0
"""Checks options that are names in the Kubernetes API, before anything is started with them."""

from collections.abc import Callable

import click

Callback = Callable[[click.Context, click.Parameter, str], str]


def name_of(is_name: Callable[[str], bool], *, may_be_empty: bool = False) -> Callback:
    """Return what checks an option that is a name in the Kubernetes API."""

    def checked(_: click.Context, parameter: click.Parameter, value: str) -> str:
        if is_name(value) or (may_be_empty and not value):
            return value
        message = f"{value!r} is no name: it has lower-case letters, digits and `-`"
        raise click.BadParameter(message, param=parameter)

    return checked
