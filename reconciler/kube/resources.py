# SPDX-License-Identifier: Apache-2.0
"""Which collections of the Kubernetes API are read and written, and where they lie.

Pure: names and paths. Nothing here knows the meaning of an object's fields.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type; `group` is empty for the core API."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api(self) -> str:
        """The path of its API version, where discovery lists its resources."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """Return the path of the collection, an object, or a subresource (URL-encoded).

        Raises ValueError for a name that cannot be one segment of a path.
        """
        parts = [self.api]
        if namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        parts += [_segment(part) for part in (name, subresource) if part]
        return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Target:
    """One object; without a name the collection that creates it; or a subresource of it."""

    resource: Resource
    name: str = ""
    namespace: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """Its path; ValueError for names that the API cannot hold."""
        return self.resource.path(self.name, self.namespace, self.subresource)


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a list or watch covers; selectors are in the API's own syntax."""

    resource: Resource
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def path(self) -> str:
        """The path of the collection."""
        return self.resource.path(namespace=self.namespace)

    def query(self) -> dict[str, str]:
        """Return the query parameters that select."""
        both = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {key: value for key, value in both.items() if value}

    def __str__(self) -> str:
        selectors = [text for text in (self.field_selector, self.label_selector) if text]
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.plural}{where}" + (
            f" ({', '.join(selectors)})" if selectors else ""
        )


PODS: Final = Resource("", "v1", "pods")
NODES: Final = Resource("", "v1", "nodes", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", namespaced=False)
EVENTS: Final = Resource("", "v1", "events")
SELF_SUBJECT_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False
)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")
SECRETS: Final = Resource("", "v1", "secrets")
MUTATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)
POD_DISRUPTION_BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets")


def _segment(text: str) -> str:
    # Kubernetes forbids these in names (apimachinery `pkg/api/validation/path`).
    if text in {".", ".."} or "/" in text or "%" in text:
        raise ValueError(f"{text!r} is not a name that the Kubernetes API can hold")
    return quote(text, safe="")
