# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/reasons.md from the enumeration and what is said of each member."""

import ast
import inspect

from policies.model import reasons
from policies.model.reasons import PERMANENT, Reason

_HEAD = """# Reasons

Generated from `policies/model/reasons.py`; `make generate` writes it anew.

Every refusal has a reason that does not change; the text beside it may. It stands in brackets in
what kubectl shows, and unchanged in the audit log (`reasons`) and in metrics (`reason`). Where a
workload is applied, only the reasons marked "never" refuse it at once: no pod of it could ever run.

| reason | meaning | a workload |
| --- | --- | --- |
"""


def render() -> str:
    """Return the page."""
    rows = (
        f"| `{reason}` | {meaning} | {'never' if reason in PERMANENT else 'warned'} |"
        for reason, meaning in meanings().items()
    )
    return _HEAD + "\n".join(rows) + "\n"


def meanings() -> dict[Reason, str]:
    """Return what the source says below each member, on one line."""
    tree = ast.parse(inspect.getsource(reasons))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found: dict[Reason, str] = {}
    last: Reason | None = None
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            last = Reason(str(node.value.value))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            found[last] = " ".join(str(node.value.value).split())
            last = None
    return found
