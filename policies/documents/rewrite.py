# SPDX-License-Identifier: Apache-2.0
"""`rewrite.fit` and `memoryLimit` of a policy: from the document to the values.

What their profiles have to do with it is for `forms.py`, which sees all documents.
"""

from collections.abc import Iterator
from typing import Final

from policies.cel import ResultType
from policies.checks import device_annotations, device_variables
from policies.documents.expressions import ExpressionCompiler
from policies.documents.field import Field
from policies.documents.kubernetes_names import is_qualified_name
from policies.documents.problems import Problem, quoted
from policies.documents.quantities import memory_mib, memory_problems
from policies.model.keys import STATE_PREFIX
from policies.model.policy import Fit, MemoryLimit, Need, UserValue
from policies.model.profile import Strength

_REFUSED: Final = device_variables.EVERYWHERE | device_variables.IN_GPU_CONTAINERS


def compile_fit(fit: Field, compiler: ExpressionCompiler) -> Fit | None:
    """Return what to choose from and by what; None where the policy does not fit."""
    if not fit.exists:
        return None
    memory = fit.at("memory")
    need = Need(
        annotation=memory.at("annotation").optional_text(),
        env=memory.at("env").optional_text(),
        expression=compiler.compile(memory.at("expression"), ResultType.ANY),
        default_mib=memory_mib(memory.at("default")),
    )
    return Fit(
        memory=need,
        candidates=fit.at("candidates").texts(),
        compute_annotation=fit.at("compute", "annotation").optional_text(),
        per_container=fit.at("perContainer").boolean(),
    )


def compile_limit(limit: Field) -> MemoryLimit | None:
    """Return the memory limit, or None where the policy sets none."""
    if not limit.exists:
        return None
    default = MemoryLimit()
    return MemoryLimit(
        from_fit=limit.at("fromFit").boolean(),
        value_mib=memory_mib(limit.at("value")),
        minimum_strength=Strength(limit.at("minimumStrength").text(default.minimum_strength)),
        user_value=UserValue(limit.at("userValue").text(default.user_value)),
        processes_annotation=limit.at("processes", "annotation").text(default.processes_annotation),
    )


def rewrite_problems(spec: Field) -> Iterator[Problem]:
    """Yield what is wrong with both, seen alone."""
    fit, limit = spec.at("rewrite", "fit"), spec.at("memoryLimit")
    for annotation in (
        fit.at("memory", "annotation"),
        fit.at("compute", "annotation"),
        limit.at("processes", "annotation"),
    ):
        yield from _annotation_problems(annotation)
    yield from _variable_problems(fit.at("memory", "env"))
    yield from memory_problems(fit.at("memory", "default"))
    yield from memory_problems(limit.at("value"))
    if limit.exists:
        yield from _limit_problems(spec, limit)


def _annotation_problems(field: Field) -> Iterator[Problem]:
    """Yield why no pod could say anything by this annotation."""
    if not field.exists:
        return
    key = field.text()
    if not is_qualified_name(key):
        yield field.problem(f"{quoted(key)} is no annotation key")
    elif key.startswith(STATE_PREFIX):
        yield field.problem(f"only Sluice writes {STATE_PREFIX}*", "use sluice.dev/* or your own")
    elif any(device_annotations.violations([key])):
        yield field.problem(f"a pod with the annotation {key} is refused: it allocates devices")


def _variable_problems(field: Field) -> Iterator[Problem]:
    """Yield why no container could say anything by this variable."""
    name = field.text()
    if name in _REFUSED or name.startswith(device_variables.PREFIXES_IN_GPU_CONTAINERS):
        message = (
            f"a GPU container that sets {name} is refused: it selects devices or undoes limits"
        )
        yield field.problem(message, "use another, such as GPU_MEMORY_LIMIT")


def _limit_problems(spec: Field, limit: Field) -> Iterator[Problem]:
    from_fit, value = limit.at("fromFit"), limit.at("value")
    rewrite = spec.at("rewrite")
    if from_fit.boolean() and value.exists:
        yield value.problem("fromFit is the limit already; write only one of them")
    elif not from_fit.boolean() and not value.exists and limit.is_sound:
        yield limit.problem("needs a limit", "write fromFit: true, or a value such as 8Gi")
    if not rewrite.exists and rewrite.is_sound:
        yield limit.problem("needs rewrite: a limit is written for the form that the policy gives")
    elif from_fit.boolean() and not rewrite.at("fit").exists and rewrite.is_sound:
        yield from_fit.problem("needs rewrite.fit, which finds what the pod needs")
