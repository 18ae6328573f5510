# SPDX-License-Identifier: Apache-2.0
"""Kind `ReclaimPolicy`: from the document to the value. Defaults are the model's."""

from collections.abc import Iterator

from policies.documents.compiled import Compiled
from policies.documents.durations import (
    UP_TO_A_DAY,
    UP_TO_A_WEEK,
    duration_problems,
    duration_seconds,
)
from policies.documents.field import Field, Subject
from policies.documents.problems import Problem
from policies.model.reclaim import AfterPdbTimeout, ReclaimPolicy


def compile_reclaim(subject: Subject) -> Compiled[ReclaimPolicy]:
    """Return the policy, with the default for every field that is left out."""
    root, default = subject.root, ReclaimPolicy()
    spec = root.at("spec")
    cohorts = spec.at("cohorts")
    after = spec.at("afterPdbTimeout").text(default.after_pdb_timeout)
    policy = ReclaimPolicy(
        name=root.at("metadata", "name").text(),
        cohorts=cohorts.texts() if cohorts.exists else None,
        enabled=spec.at("enabled").boolean(default=default.enabled),
        notice_seconds=duration_seconds(spec.at("notice"), default.notice_seconds),
        max_grace_seconds=duration_seconds(spec.at("maxGrace"), default.max_grace_seconds),
        pdb_timeout_seconds=duration_seconds(spec.at("pdbTimeout"), default.pdb_timeout_seconds),
        after_pdb_timeout=AfterPdbTimeout(after),
        readmit_after_seconds=duration_seconds(
            spec.at("readmitAfter"), default.readmit_after_seconds
        ),
    )
    return Compiled(policy, root, tuple(_problems(spec)))


def _problems(spec: Field) -> Iterator[Problem]:
    for name in ("notice", "readmitAfter"):
        yield from duration_problems(spec.at(name), UP_TO_A_DAY)
    for name in ("maxGrace", "pdbTimeout"):
        yield from duration_problems(spec.at(name), UP_TO_A_WEEK)
