# SPDX-License-Identifier: Apache-2.0
"""The webhook entries for documents that people keep as custom resources.

They fail closed, since a set that is broken is not served, and concern Sluice's own API group
alone. Sluice's account is not asked about: it writes status and mirrors, also while it starts.
"""

import json
from typing import Final

from reconciler.kube.document_resources import API_KINDS, GROUP, VERSION, plural
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.webhook_entries import Webhook, entry, rule

_RESOURCES: Final = [plural(kind) for kind in API_KINDS]
_SCOPE: Final = "Cluster"


def check_documents(options: ManifestOptions, name: str) -> Webhook:
    """Render the entry of the first pass, which changes nothing.

    It is there since what a schema forbids the API server refuses before the second pass, in words
    of its own and one object's errors only; it may be skipped.
    """
    rules = [rule(GROUP, [VERSION], _RESOURCES, "CREATE", "UPDATE", scope=_SCOPE)]
    return _cluster_wide(entry(options, name, rules, [_not_by_sluice(options)]))


def guard_documents(options: ManifestOptions) -> Webhook:
    """Render the entry of the second pass, which decides; also on deletion and status."""
    rules = [
        rule(GROUP, [VERSION], _RESOURCES, "CREATE", "UPDATE", "DELETE", scope=_SCOPE),
        rule(GROUP, [VERSION], [f"{name}/status" for name in _RESOURCES], "UPDATE", scope=_SCOPE),
    ]
    return _cluster_wide(
        entry(
            options,
            "documents.validate.sluice.dev",
            rules,
            [_not_by_sluice(options)],
            failure_policy=options.failure_policy,
        )
    )


def _not_by_sluice(options: ManifestOptions) -> tuple[str, str]:
    # What JSON writes as a string, CEL reads as the same string.
    return "not-by-sluice", f"request.userInfo.username != {json.dumps(options.username)}"


def _cluster_wide(rendered: Webhook) -> Webhook:
    """Return the entry without its namespaces: its objects are in none."""
    return {key: value for key, value in rendered.items() if key != "namespaceSelector"}
