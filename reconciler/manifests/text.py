# SPDX-License-Identifier: Apache-2.0
"""Objects as YAML that people can read in a review. What the objects are is not known here."""

from collections.abc import Iterable, Mapping

import yaml


def to_yaml(objects: Iterable[Mapping[str, object]]) -> str:
    """Return the objects as YAML documents; expressions of several lines stay readable."""
    return "---\n".join(
        yaml.dump(dict(item), Dumper=_Dumper, sort_keys=False, width=10_000) for item in objects
    )


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a literal block, and every value out in full."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - given by the base class
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
