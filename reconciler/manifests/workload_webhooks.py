# SPDX-License-Identifier: Apache-2.0
"""The webhook entries for workloads, which only warn: they fail open, and nothing waits for them.

Which kinds there are is data; nothing here knows one by name but those that make others.
"""

from collections.abc import Sequence
from typing import Final

from policies.model.workload import WorkloadKind
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.predicates import Predicates
from reconciler.manifests.webhook_entries import Rules, Webhook, entry, rule

_CHANGES_ITS_SPEC: Final = "oldObject == null || object.?spec != oldObject.?spec"


def workloads(options: ManifestOptions) -> Webhook:
    """Render the entry that warns of what will become of the pods of Kubernetes' own workloads."""
    kinds = [kind for kind in options.catalog.workloads.kinds if kind.is_built_in]
    # A Deployment's ReplicaSet and a CronJob's Job have the template that was judged already.
    owned = (
        "object.metadata.?ownerReferences.orValue([]).exists(o,"
        " o.?controller.orValue(false) && o.kind in ['Deployment', 'CronJob'])"
    )
    return entry(
        options,
        "workloads.validate.sluice.dev",
        _rules(kinds),
        [
            ("is-no-part-of-another", f"!{owned}"),
            ("changes-its-spec", _CHANGES_ITS_SPEC),
            ("touches-gpus", _template_touches_gpus(options, kinds)),
        ],
    )


def custom_workloads(options: ManifestOptions) -> Webhook:
    """Render the same for custom kinds.

    Their templates lie anywhere, so that every change of a spec is sent; a rule for a kind that
    the cluster does not have does nothing.
    """
    kinds = [kind for kind in options.catalog.workloads.kinds if not kind.is_built_in]
    owned = "object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))"
    return entry(
        options,
        "custom-workloads.validate.sluice.dev",
        _rules(kinds),
        [("is-no-part-of-another", f"!{owned}"), ("changes-its-spec", _CHANGES_ITS_SPEC)],
    )


def _rules(kinds: Sequence[WorkloadKind]) -> Rules:
    """Return a rule for each API group and its versions, in the order of the kinds."""
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for kind in kinds:
        grouped.setdefault((kind.group, kind.versions), []).append(kind.resource)
    return [
        rule(group, versions, resources, "CREATE", "UPDATE")
        for (group, versions), resources in grouped.items()
    ]


def _template_touches_gpus(options: ManifestOptions, kinds: Sequence[WorkloadKind]) -> str:
    """Return whether a template touches GPUs, by the paths at which the kinds have theirs."""
    touches = Predicates(options.catalog).pod_touches_gpus
    by_path: dict[str, list[str]] = {}
    for kind in kinds:
        for template in kind.templates:
            by_path.setdefault(".".join(("object", *template.path)), []).append(kind.kind)
    *others, (usual, _) = sorted(by_path.items(), key=lambda item: len(item[1]))
    expression = touches(usual)
    for path, names in others:
        listed = ", ".join(f"'{name}'" for name in names)
        expression = f"request.kind.kind in [{listed}] ? (\n{touches(path)})\n: (\n{expression})"
    return expression
