# SPDX-License-Identifier: Apache-2.0
"""What is looked at of Secrets and webhook configurations: whose they are, and what they hold.

Pure. Whatever is not as it should be reads as absent, since people edit these objects by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509

from certs.errors import CertificateError
from certs.pem import parse_certificates
from policies.model.keys import CERTIFICATES_BY_LEADER, CERTIFICATES_LABEL, ROTATE
from reconciler.kube import raw

_NAME_LABEL: Final = "app.kubernetes.io/name"
_NAME: Final = "sluice"
_SECRET_KEYS: Final = (
    "cert-manager.io/certificate-name",
    "cert-manager.io/issuer-name",
    "controller.cert-manager.io/fao",
)
"""By what cert-manager marks a Secret that it writes (cert-manager `pkg/apis/certmanager/v1`)."""

_INJECTORS: Final = {
    "cert-manager.io/inject-ca-from": "cert-manager",
    "cert-manager.io/inject-ca-from-secret": "cert-manager",
    "cert-manager.io/inject-apiserver-ca": "cert-manager",
    "service.beta.openshift.io/inject-cabundle": "OpenShift's service CA",
}
"""Annotations by which others are asked to write the CA bundles of a configuration."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An object, as Events name it; `namespace` is empty for cluster-scoped ones."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    version: str


@dataclass(frozen=True, slots=True)
class SecretView:
    """A Secret. `others` says who manages it if that is not the leader, else it is empty."""

    subject: Subject
    data: Mapping[str, bytes]
    others: str = ""
    is_rotation_asked: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One webhook of a configuration: the host that is called, and which authorities it trusts."""

    host: str
    trusted: tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A webhook configuration; `others` as in SecretView."""

    subject: Subject
    entries: tuple[Entry, ...]
    others: str = ""


def secret(item: Mapping[str, object]) -> SecretView:
    """Return the view of a raw Secret."""
    annotations, labels = _annotations(item), raw.strings(item, "metadata", "labels")
    return SecretView(
        subject=_subject(item, "v1", "Secret"),
        data=raw.decoded(item, "data"),
        others=_secret_manager(annotations, labels),
        is_rotation_asked=ROTATE in annotations,
    )


def configuration(kind: str, item: Mapping[str, object]) -> Configuration:
    """Return the view of a raw configuration of this kind."""
    return Configuration(
        subject=_subject(item, "admissionregistration.k8s.io/v1", kind),
        entries=tuple(map(_entry, raw.mappings(item, "webhooks"))),
        others=_configuration_manager(_annotations(item), raw.strings(item, "metadata", "labels")),
    )


def _secret_manager(annotations: Mapping[str, str], labels: Mapping[str, str]) -> str:
    if any(key in annotations or key in labels for key in _SECRET_KEYS):
        return "cert-manager"
    is_ours = labels.get(CERTIFICATES_LABEL) == CERTIFICATES_BY_LEADER
    return "" if is_ours else f"whoever made it without {CERTIFICATES_LABEL}"


def _configuration_manager(annotations: Mapping[str, str], labels: Mapping[str, str]) -> str:
    for key, manager in _INJECTORS.items():
        if key in annotations:
            return manager
    is_ours = labels.get(_NAME_LABEL) == _NAME
    return "" if is_ours else f"whoever made it without {_NAME_LABEL}"


def _entry(item: Mapping[str, object]) -> Entry:
    called = raw.mapping(item, "clientConfig")
    bundle = raw.decoded(item, "clientConfig").get("caBundle", b"")
    try:
        trusted = parse_certificates(bundle, "caBundle")
    except CertificateError:
        trusted = ()
    return Entry(_host(called), trusted)


def _host(called: Mapping[str, object]) -> str:
    """Return the name that the API server checks a certificate for (apiserver `webhook`)."""
    service = raw.mapping(called, "service")
    if service:
        return f"{raw.text(service, 'name')}.{raw.text(service, 'namespace')}.svc"
    try:
        return urlsplit(raw.text(called, "url")).hostname or ""
    except ValueError:
        return ""


def _annotations(item: Mapping[str, object]) -> Mapping[str, str]:
    return raw.strings(item, "metadata", "annotations")


def _subject(item: Mapping[str, object], api_version: str, kind: str) -> Subject:
    metadata = raw.mapping(item, "metadata")
    return Subject(
        api_version,
        kind,
        raw.text(metadata, "namespace"),
        raw.text(metadata, "name"),
        raw.text(metadata, "uid"),
        raw.text(metadata, "resourceVersion"),
    )
