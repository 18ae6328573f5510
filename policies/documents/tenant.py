# SPDX-License-Identifier: Apache-2.0
"""Kind `Tenant`: from the document to the value."""

from collections.abc import Iterator, Mapping

from policies.documents.compiled import Compiled
from policies.documents.field import Field, Subject
from policies.documents.kubernetes_names import key_problems
from policies.documents.labels import compile_selector, selector_problems
from policies.documents.problems import Problem, Severity
from policies.model.tenant import DEFAULT_POOL, Quota, Tenant

_MILLI = 1000


def compile_tenant(subject: Subject) -> Compiled[Tenant]:
    """Return the tenant with its quota in milli-GPU."""
    root = subject.root
    spec = root.at("spec")
    selector, gpus = spec.at("namespaces", "selector"), spec.at("quota", "gpus")
    profiles = spec.at("profiles")
    tenant = Tenant(
        name=root.at("metadata", "name").text(),
        namespaces=frozenset(spec.at("namespaces", "names").texts()),
        selector=compile_selector(selector) if selector.exists else None,
        pools={DEFAULT_POOL: Quota(_milli(gpus.at("guarantee")), _milli(gpus.at("ceiling")))}
        if gpus.exists
        else {},
        profiles=profiles.texts() if profiles.exists else None,
        cohort=spec.at("cohort").optional_text(),
        labels=root.at("metadata", "labels").text_map(),
        cel=_cel(root),
    )
    return Compiled(tenant, root, tuple(_problems(root, tenant)))


def _milli(field: Field) -> int | None:
    number = field.number()
    return None if number is None else int(number * _MILLI)


def _cel(root: Field) -> Mapping[str, object]:
    """Return the `tenant` variable; a quota is a double there, as it is written."""
    gpus = root.at("spec", "quota", "gpus")
    quota = {name: _double(gpus.at(name)) for name in ("guarantee", "ceiling")}
    return {
        "name": root.at("metadata", "name").text(),
        "labels": root.at("metadata", "labels").text_map(),
        "quota": {"gpus": quota},
    }


def _double(field: Field) -> float | None:
    number = field.number()
    return None if number is None else float(number)


def _problems(root: Field, tenant: Tenant) -> Iterator[Problem]:
    spec = root.at("spec")
    selector, gpus = spec.at("namespaces", "selector"), spec.at("quota", "gpus")
    yield from key_problems(root.at("metadata", "labels"))
    yield from selector_problems(selector)
    if tenant.selector is not None and not tenant.selector.expressions:
        message = "an empty selector selects every namespace, those of the cluster too"
        yield selector.problem(message, severity=Severity.WARNING)
    guarantee, ceiling = tenant.guarantee_milli, tenant.ceiling_milli
    if guarantee is not None and ceiling is not None and guarantee > ceiling:
        shown = f"{gpus.at('guarantee').value} is more than the ceiling {gpus.at('ceiling').value}"
        yield gpus.at("guarantee").problem(f"a guarantee of {shown}")
