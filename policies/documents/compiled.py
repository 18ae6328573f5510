# SPDX-License-Identifier: Apache-2.0
"""What a compiler hands back: the value, the document it came from, and what is wrong with it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from policies.documents.field import Field
from policies.documents.problems import Problem, has_errors

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Compiled(Generic[T_co]):
    """One document, compiled. With an Error among the problems the value is not to be used."""

    value: T_co
    root: Field
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """Return the document's name; empty if it has none."""
        return self.root.at("metadata", "name").text()

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing of the document was left out for being at fault."""
        return not self.root.subject.broken and not has_errors(self.problems)

    @property
    def place(self) -> str:
        """Return where the document stands, for problems that concern two documents."""
        document = self.root.subject.document
        line = document.position(("metadata", "name")).line
        return f"{document.file}:{line}" if line else document.file
