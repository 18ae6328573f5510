# SPDX-License-Identifier: Apache-2.0
"""What `kubectl get` shows of each kind, as data. `-o wide` shows the further columns too."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from policies.documents.kinds import Kind

Object = dict[str, object]


class ColumnType(StrEnum):
    """How kubectl prints a value; a Date as the time since."""

    TEXT = "string"
    INTEGER = "integer"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `path` is a JSONPath. Only `is_wide` ones wait for `-o wide`."""

    name: str
    path: str
    type: ColumnType = ColumnType.TEXT
    is_wide: bool = False

    def to_json(self) -> Object:
        """Return it as a CustomResourceColumnDefinition."""
        shown: Object = {"name": self.name, "type": str(self.type), "jsonPath": self.path}
        return {**shown, "priority": 1} if self.is_wide else shown


_ACCEPTED_PATH: Final = '.status.conditions[?(@.type=="Accepted")].status'
_SOURCE_PATH: Final = ".status.source"
_AGE_PATH: Final = ".metadata.creationTimestamp"

_TENANT: Final = (
    Column("Guarantee", ".status.guarantee"),
    Column("Ceiling", ".status.ceiling"),
    Column("Used", ".status.used"),
    Column("Borrowed", ".status.borrowed"),
    Column("Pending", ".status.pending", ColumnType.INTEGER),
    Column("Oldest Wait", ".status.oldestWait", ColumnType.DATE),
    Column("Lent", ".status.lent", is_wide=True),
    Column("Owed", ".status.owed", is_wide=True),
    Column("Memory", ".status.memory.used", is_wide=True),
    Column("Cohort", ".spec.cohort", is_wide=True),
    Column("Accepted", _ACCEPTED_PATH, is_wide=True),
    Column("Source", _SOURCE_PATH, is_wide=True),
    Column("Age", _AGE_PATH, ColumnType.DATE, is_wide=True),
)
_DOCUMENT: Final = (
    Column("Accepted", _ACCEPTED_PATH),
    Column("Source", _SOURCE_PATH),
    Column("Age", _AGE_PATH, ColumnType.DATE),
)
_OWN: Final[Mapping[str, tuple[Column, ...]]] = {
    "Settings": (Column("Mode", ".spec.mode"),),
    "SharingProfile": (Column("Mode", ".spec.mode"),),
    "GPUPolicy": (
        Column("Order", ".spec.order", ColumnType.INTEGER),
        Column("Profile", ".spec.rewrite.profile"),
        Column("Enforcement", ".spec.enforcement"),
    ),
    "Exemption": (Column("Expires", ".spec.expiresAt"),),
    "ReclaimPolicy": (Column("Notice", ".spec.notice"),),
}


def columns(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of a kind, from the left; the name comes before them by itself."""
    if kind is Kind.TENANT:
        return _TENANT
    return (*_OWN.get(kind, ()), *_DOCUMENT)
