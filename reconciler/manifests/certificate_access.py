# SPDX-License-Identifier: Apache-2.0
"""What may be done with certificates: by the leader, which keeps them, and by who serves them.

Lists and watches of one object by its name are within rules for that name (RBAC, `resourceNames`).
"""

from reconciler.kube.tls_secret import KeptCertificates
from reconciler.manifests.options import ManifestOptions

Object = dict[str, object]

_CONFIGURATIONS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]


def kept_certificates(options: ManifestOptions) -> KeptCertificates | None:
    """Return where the leader keeps certificates; None where they are from files."""
    if not options.keeps_certificates:
        return None
    return KeptCertificates(options.namespace, f"{options.name}-tls", options.name)


def bundle_rules(options: ManifestOptions) -> tuple[Object, ...]:
    """Return the leader's rules for webhook configurations: it says whom they trust."""
    if not options.keeps_certificates:
        return ()
    return (
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": list(_CONFIGURATIONS),
            "resourceNames": [options.name],
            "verbs": ["list", "watch", "patch"],
        },
    )


def keeping_rules(options: ManifestOptions) -> tuple[Object, ...]:
    """Return the leader's rules for its Secrets, within the namespace.

    Creation cannot be limited to a name.
    """
    kept = kept_certificates(options)
    if kept is None:
        return ()
    secrets: Object = {"apiGroups": [""], "resources": ["secrets"]}
    names = [kept.secret, kept.authority]
    return (
        {**secrets, "verbs": ["create"]},
        {**secrets, "resourceNames": names, "verbs": ["list", "watch", "patch"]},
    )


def serving_rules(options: ManifestOptions) -> tuple[Object, ...]:
    """Return the rules of who serves, within the namespace: the authority's key is not theirs."""
    kept = kept_certificates(options)
    if kept is None:
        return ()
    secrets: Object = {"apiGroups": [""], "resources": ["secrets"]}
    return ({**secrets, "resourceNames": [kept.secret], "verbs": ["list", "watch"]},)
