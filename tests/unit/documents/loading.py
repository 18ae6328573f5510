# SPDX-License-Identifier: Apache-2.0
"""Loads documents from texts as a shell would, with the real catalog and CEL environment."""

from collections.abc import Callable
from datetime import datetime
from textwrap import dedent

from policies.documents.load import LoadResult, SourceText, load
from policies.documents.problems import Severity
from policies.model.policyset import PolicySet

Loader = Callable[..., LoadResult]

TENANT = """\
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat}
spec:
  namespaces: {names: [chat]}
"""
PROFILE = """\
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: slice-4}
spec: {mode: TimeSlice, replicas: 4}
"""
POLICY = """\
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: no-raw-gpu}
spec:
  rewrite: {profile: slice-4}
"""
COMPLETE = f"{TENANT}---\n{PROFILE}---\n{POLICY}"


def document(kind: str, name: str, spec: str) -> str:
    """Return a document whose spec is this text, which begins in line 5 and column 3."""
    lines = dedent(spec).strip("\n").splitlines()
    body = "\n".join(f"  {line}" if line else "" for line in lines)
    return (
        f"apiVersion: sluice.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
        f"spec:\n{body}\n"
    )


def loader(catalog: object, environment: object) -> Loader:
    """Return a function that loads texts as a.yaml, b.yaml, ..."""

    def load_texts(*texts: str | bytes, now: datetime | None = None) -> LoadResult:
        sources = [
            SourceText(f"{chr(ord('a') + i)}.yaml", t.encode() if isinstance(t, str) else t)
            for i, t in enumerate(texts)
        ]
        return load(sources, catalog=catalog, environment=environment, now=now)  # type: ignore[arg-type]  # fixtures

    return load_texts


def lines(result: LoadResult, severity: Severity | None = None) -> list[str]:
    """Return the problems as text, those of one severity or all."""
    return [str(p) for p in result.problems if severity in (None, p.severity)]


def errors(result: LoadResult) -> list[str]:
    """Return the errors as text."""
    return lines(result, Severity.ERROR)


def served(result: LoadResult) -> PolicySet:
    """Return the set, or fail with what kept it from being served."""
    assert result.policy_set is not None, lines(result)
    return result.policy_set
