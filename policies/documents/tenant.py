# SPDX-License-Identifier: Apache-2.0
"""Kind `Tenant`: from the document to the value. Defaults are the model's."""

from collections.abc import Iterator

from policies.documents.compiled import Compiled
from policies.documents.durations import (
    A_MINUTE_TO_A_WEEK,
    UP_TO_A_MONTH,
    duration_problems,
    duration_seconds,
)
from policies.documents.field import Field, Subject
from policies.documents.kubernetes_names import key_problems
from policies.documents.labels import compile_selector, selector_problems
from policies.documents.problems import Problem, Severity
from policies.documents.tenant_quota import (
    cel_quota,
    memory_mib,
    pool_quotas,
    quota_problems,
    resource_ceilings,
)
from policies.model.tenant import Lending, Tenant, WhenOverQuota

DEFAULT_PRIORITY = 0
DEFAULT_WEIGHT = 1


def compile_tenant(subject: Subject) -> Compiled[Tenant]:
    """Return the tenant with its quota in milli-GPU and MiB."""
    root = subject.root
    spec, quota = root.at("spec"), root.at("spec", "quota")
    name, labels = root.at("metadata", "name").text(), root.at("metadata", "labels").text_map()
    selector, profiles = spec.at("namespaces", "selector"), spec.at("profiles")
    tenant = Tenant(
        name=name,
        namespaces=frozenset(spec.at("namespaces", "names").texts()),
        selector=compile_selector(selector) if selector.exists else None,
        pools=pool_quotas(quota),
        memory_mib=memory_mib(quota),
        resources=resource_ceilings(quota),
        profiles=profiles.texts() if profiles.exists else None,
        cohort=spec.at("cohort").optional_text(),
        priority=spec.at("priority").integer(DEFAULT_PRIORITY),
        weight=spec.at("weight").integer(DEFAULT_WEIGHT),
        lending=_lending(spec.at("lending")),
        min_runtime_seconds=duration_seconds(spec.at("minRuntime"), 0),
        when_over_quota=WhenOverQuota(spec.at("whenOverQuota").text(WhenOverQuota.QUEUE)),
        labels=labels,
        cel={"name": name, "labels": labels, "quota": cel_quota(quota)},
    )
    return Compiled(tenant, root, tuple(_problems(root, tenant)))


def _lending(lending: Field) -> Lending:
    default = Lending()
    return Lending(
        enabled=lending.at("enabled").boolean(default=default.enabled),
        idle_after_seconds=duration_seconds(lending.at("idleAfter"), default.idle_after_seconds),
    )


def _problems(root: Field, tenant: Tenant) -> Iterator[Problem]:
    spec = root.at("spec")
    selector = spec.at("namespaces", "selector")
    yield from key_problems(root.at("metadata", "labels"))
    yield from selector_problems(selector)
    if tenant.selector is not None and not tenant.selector.expressions:
        message = "an empty selector selects every namespace, those of the cluster too"
        yield selector.problem(message, severity=Severity.WARNING)
    yield from quota_problems(spec.at("quota"))
    yield from duration_problems(spec.at("lending", "idleAfter"), A_MINUTE_TO_A_WEEK)
    yield from duration_problems(spec.at("minRuntime"), UP_TO_A_MONTH)
