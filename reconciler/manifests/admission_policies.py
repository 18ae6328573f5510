# SPDX-License-Identifier: Apache-2.0
"""Admission policies that the API server runs by itself, and so while Sluice is down.

They set NVIDIA_VISIBLE_DEVICES=void where no GPU is asked for (an image may say `all`, and no
webhook sees images), demand it once all mutation is done, and guard Sluice's keys where no pod
webhook is called. Source: Kubernetes admissionregistration.k8s.io/v1, CEL in admission.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from policies.model.keys import STATE_PREFIX, VISIBLE_DEVICES, VOID
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.predicates import Predicates, any_of, keys_changed
from reconciler.manifests.webhook_entries import API_VERSION

_NEW_EPHEMERAL: Final = (
    "object.spec.?ephemeralContainers.orValue([]).filter(c,"
    " !oldObject.spec.?ephemeralContainers.orValue([]).exists(o, o.name == c.name))"
)
"""The others are immutable, and may be from before Sluice was installed."""

_NAMES_IT: Final = f"e.name == '{VISIBLE_DEVICES}'"

Object = dict[str, object]


def void_policies(options: ManifestOptions) -> tuple[Object, ...]:
    """Render what sets and demands the variable, for clusters that can do so, else nothing."""
    if not options.has_mutating_admission_policy:
        return ()
    demand = (*_demand_void(options, "pods"), *_demand_void(options, "ephemeral"))
    if options.observe:
        return demand
    return (*_set_void(options, "pods"), *_set_void(options, "ephemeral"), *demand)


def key_guard(options: ManifestOptions) -> tuple[Object, ...]:
    """Render the guard of state keys on pods/status, where no webhook on pods is called."""
    condition = f"k.startsWith('{STATE_PREFIX}')"
    changed = any_of(*(keys_changed(field, condition) for field in ("annotations", "labels")))
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": _constraints(options, ["pods/status"], "UPDATE"),
        "matchConditions": [
            {
                "name": "not-by-sluice",
                # What JSON writes as a string, CEL reads as the same string.
                "expression": f"request.userInfo.username != {json.dumps(options.username)}",
            }
        ],
        "validations": [
            {
                "expression": f"!(\n{changed})",
                "message": f"sluice: [OwnedKey] only Sluice may write annotations and labels"
                f" {STATE_PREFIX}*",
                "reason": "Forbidden",
            }
        ],
    }
    name = f"{options.name}-keys"
    return _policy(options, "ValidatingAdmissionPolicy", name, spec), _binding(options, name)


def _set_void(options: ManifestOptions, what: str) -> tuple[Object, ...]:
    name = f"{options.name}-set-void-{what}"
    from_elsewhere = f"c.?env.orValue([]).exists(e, {_NAMES_IT} && has(e.valueFrom))"
    fields = ",\n    ".join(
        f"{section}: {containers}\n"
        f"      .filter(c, !(c.name in variables.kept))\n"
        f"      .map(c, Object.spec.{section}{{name: c.name, env: [\n"
        f"        Object.spec.{section}.env{{name: '{VISIBLE_DEVICES}', value: '{VOID}'}}]}})"
        for section, containers in _sections(what)
    )
    expression = f"Object{{\n  spec: Object.spec{{\n    {fields}\n  }}\n}}"
    spec: Object = {
        # It can only fail on invalid pods, of which the API server's own message says more; what
        # it leaves undone is refused by the policy below.
        "failurePolicy": "Ignore",
        # Without conditions it is called always, and so again when a webhook adds a container.
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": _pod_constraints(options, what),
        # A variable with valueFrom cannot be overwritten by applying a value; it is refused below.
        "variables": [_kept(options, what, from_elsewhere)],
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": expression},
            }
        ],
    }
    binding = _head(options, "MutatingAdmissionPolicyBinding", name)
    binding["spec"] = {"policyName": name}
    return _policy(options, "MutatingAdmissionPolicy", name, spec), binding


def _demand_void(options: ManifestOptions, what: str) -> tuple[Object, ...]:
    name = f"{options.name}-demand-void-{what}"
    is_void = (
        f"c.?env.orValue([]).exists(e, {_NAMES_IT})"
        f" && c.env.all(e, !({_NAMES_IT}) || e.?value.orValue('') == '{VOID}')"
    )
    message = (
        f"'sluice: [DeviceVariable] container ' + variables.open[0] + ' asks for no GPU,"
        f" so its {VISIBLE_DEVICES} must be {VOID}: leave the variable out'"
    )
    spec: Object = {
        "failurePolicy": options.failure_policy,
        "matchConstraints": _pod_constraints(options, what),
        "variables": [
            _kept(options, what, is_void),
            {
                "name": "open",
                "expression": f"({_all(what)}).map(c, c.name)\n"
                "  .filter(name, !(name in variables.kept))",
            },
        ],
        "validations": [
            {
                "expression": "variables.open.size() == 0",
                "messageExpression": message,
                "reason": "Forbidden",
            }
        ],
    }
    return _policy(options, "ValidatingAdmissionPolicy", name, spec), _binding(options, name)


def _kept(options: ManifestOptions, what: str, exception: str) -> Object:
    """Render the names of the containers that ask for devices, or for which `exception` holds."""
    asks = Predicates(options.catalog).container_asks_gpus("c")
    claims = "c.?resources.?claims.orValue([]).size() > 0"
    condition = f"\n    {asks}\n    || {claims}\n    || {exception}"
    return {
        "name": "kept",
        "expression": f"({_all(what)})\n  .filter(c,{condition})\n  .map(c, c.name)",
    }


def _all(what: str) -> str:
    return " + ".join(containers for _, containers in _sections(what))


def _sections(what: str) -> Sequence[tuple[str, str]]:
    if what == "ephemeral":
        return (("ephemeralContainers", _NEW_EPHEMERAL),)
    return (
        ("containers", "object.spec.containers"),
        ("initContainers", "object.spec.?initContainers.orValue([])"),
    )


def _pod_constraints(options: ManifestOptions, what: str) -> Object:
    if what == "ephemeral":
        return _constraints(options, ["pods/ephemeralcontainers"], "UPDATE")
    return _constraints(options, ["pods"], "CREATE")


def _constraints(options: ManifestOptions, resources: Sequence[str], operation: str) -> Object:
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": options.namespace_selector(),
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": [operation],
                "resources": list(resources),
                "scope": "Namespaced",
            }
        ],
    }


def _policy(options: ManifestOptions, kind: str, name: str, spec: Mapping[str, object]) -> Object:
    return {**_head(options, kind, name), "spec": dict(spec)}


def _binding(options: ManifestOptions, name: str) -> Object:
    actions = ["Audit"] if options.observe else ["Deny"]
    binding = _head(options, "ValidatingAdmissionPolicyBinding", name)
    binding["spec"] = {"policyName": name, "validationActions": actions}
    return binding


def _head(options: ManifestOptions, kind: str, name: str) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "labels": options.labels},
    }
