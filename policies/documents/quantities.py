# SPDX-License-Identifier: Apache-2.0
"""GPU memory in documents, as Kubernetes writes memory: `8Gi`, `8G`, `8192Mi`, or bytes."""

import re
from collections.abc import Iterator
from typing import Final

from policies.admission.needs import MAX_MIB
from policies.documents.field import Field
from policies.documents.phrases import shown
from policies.documents.problems import Problem
from policies.model.quantity import MEBI, QuantityError, parse_mib, parse_quantity

_EXAMPLES: Final = "write it as 8Gi or 8192Mi"
_MOST_MIB: Final = 2**40
"""An exbibyte: more than all GPUs of any cluster together."""
_SPELLED: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([MGT])(i?)B?", re.ASCII | re.IGNORECASE)
"""What people write: 8GB, 8 GiB, 8gi."""


def memory_mib(field: Field) -> int | None:
    """Return memory in MiB, rounded up; None if there is none or `memory_problems` has some."""
    try:
        mib = parse_mib(field.value)
    except QuantityError:
        return None
    return mib if _is_possible(field.value) else None


def memory_problems(field: Field) -> Iterator[Problem]:
    """Yield what keeps a field that is there from being an amount of GPU memory."""
    if not field.exists:
        return
    try:
        if _is_possible(field.value):
            return
        is_small = parse_quantity(field.value) < MEBI
    except QuantityError:
        yield field.problem(f"{shown(field.value)} is no quantity", _meant(field.text()))
        return
    if is_small:
        message = f"{shown(field.value)} is less than 1 MiB"
        yield field.problem(message, "write a unit, such as 8Gi")
    else:
        yield field.problem(f"{shown(field.value)} is more memory than a GPU has")


def ceiling_mib(field: Field) -> int | None:
    """Return a ceiling of memory in MiB, rounded down; None if there is none or none can be."""
    try:
        return parse_quantity(field.value) // MEBI
    except QuantityError:
        return None


def ceiling_problems(field: Field) -> Iterator[Problem]:
    """Yield what keeps a field that is there from being memory of many GPUs; 0 is a ceiling too."""
    if not field.exists:
        return
    try:
        size = parse_quantity(field.value)
    except QuantityError:
        yield field.problem(f"{shown(field.value)} is no quantity", _meant(field.text()))
        return
    if size < 0:
        yield field.problem(f"must be at least 0, is {shown(field.value)}")
    elif 0 < size < MEBI:
        message = f"{shown(field.value)} is less than 1 MiB"
        yield field.problem(message, "write a unit, such as 1280Gi")
    elif size > _MOST_MIB * MEBI:
        yield field.problem(f"{shown(field.value)} is more memory than any cluster has")


def _is_possible(value: object) -> bool:
    return parse_quantity(value) >= MEBI and parse_mib(value) <= MAX_MIB


def _meant(text: str) -> str:
    match = _SPELLED.fullmatch(text.strip())
    if match is None:
        return _EXAMPLES
    number, unit, binary = match.groups()
    return f"write {number}{unit.upper()}{binary.lower()}"
