# SPDX-License-Identifier: Apache-2.0
"""Who is spared which policy. An exemption that has ended is reported, and counts no longer."""

from collections.abc import Iterator

from policies.admission.context import Context
from policies.model.exemption import Exemption
from policies.model.policy import Policy


def exemption_of(context: Context, policy: Policy) -> Exemption | None:
    """Return the exemption that spares the pod this policy, the one that lasts longest."""
    found = [e for e in _speaking(context, policy) if e.expires_at > context.facts.now]
    return max(found, key=lambda exemption: exemption.expires_at, default=None)


def expired(context: Context, policies: tuple[Policy, ...]) -> Iterator[tuple[Policy, Exemption]]:
    """Yield the policies that the pod would be spared, had its exemption not ended."""
    for policy in policies:
        for exemption in _speaking(context, policy):
            if exemption.expires_at <= context.facts.now:
                yield policy, exemption
                break


def _speaking(context: Context, policy: Policy) -> Iterator[Exemption]:
    request, tenant = context.request, context.tenant
    for exemption in context.policies.exemptions:
        if (
            policy.name in exemption.policies
            and (
                exemption.tenants is None
                or (tenant is not None and tenant.name in exemption.tenants)
            )
            and (exemption.namespaces is None or request.namespace in exemption.namespaces)
            and (exemption.users is None or request.user.username in exemption.users)
            and (exemption.labels is None or exemption.labels.matches(context.pod.labels))
        ):
            yield exemption
