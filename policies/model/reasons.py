# SPDX-License-Identifier: Apache-2.0
"""Why something was refused: the one list used in answers, audit, metrics, Events and docs."""

from enum import StrEnum


class Reason(StrEnum):
    """A short, stable cause; the free text beside it may change, this may not."""

    # What was asked is malformed
    INVALID_QUANTITY = "InvalidQuantity"
    """A GPU count that is no whole, non-negative number below the cap."""
    REQUEST_WITHOUT_LIMIT = "RequestWithoutLimit"
    """A GPU in requests that limits lack, or with another number."""
    UNKNOWN_GPU_RESOURCE = "UnknownGPUResource"
    """A resource name of a GPU family that no allowed profile gives."""
    TOO_MANY_CONTAINERS = "TooManyContainers"
    """More containers than are decided on; such a pod is refused unread."""
    MALFORMED_OBJECT = "MalformedObject"
    """A field of the object has a type that the Kubernetes API does not give it."""

    # Who asks
    NO_TENANT = "NoTenant"
    """The namespace belongs to no tenant."""
    NAMESPACE_UNKNOWN = "NamespaceUnknown"
    """The namespace's labels are not known yet, so neither is its tenant; a retry helps."""
    AMBIGUOUS_TENANT = "AmbiguousTenant"
    """More than one tenant claims the namespace."""

    # What policy says
    NO_POLICY = "NoPolicy"
    """No policy gives this pod a form."""
    POLICY_VIOLATION = "PolicyViolation"
    """A validation of a matching policy failed."""
    POLICY_ERROR = "PolicyError"
    """An expression of a matching policy could not be evaluated; that refuses."""
    NO_CANDIDATE_FITS = "NoCandidateFits"
    """No share that the tenant may use and some node offers covers the stated need."""
    INVALID_NEED = "InvalidNeed"
    """A stated need, limit or number of processes that cannot be read."""
    PROFILE_NOT_ALLOWED = "ProfileNotAllowed"
    """The tenant may not use this form."""
    MULTIPLE_SHARES = "MultipleShares"
    """More than one share of a profile that gives one."""
    OVER_CEILING = "OverCeiling"
    """Asks for more than the tenant's ceiling, so it could never run."""
    OVER_GUARANTEE = "OverGuarantee"
    """Exclusive work that does not fit the tenant's guarantee: it could never be taken back."""
    PLACEMENT_CONFLICT = "PlacementConflict"
    """The pod's own node selector excludes the nodes that its form needs."""
    MIXED_FORMS = "MixedForms"
    """One pod asks for forms that no single node offers together."""
    CLAIMS_UNSUPPORTED = "ClaimsUnsupported"
    """A GPU asked for through a resource claim."""

    # Ways around policy
    DEVICE_VARIABLE = "DeviceVariable"
    """An environment variable that selects devices or undoes a limit."""
    DEVICE_ANNOTATION = "DeviceAnnotation"
    """An annotation that another component takes as a device allocation."""
    HOST_ACCESS = "HostAccess"
    """Privileges, host namespaces or host paths that reach devices past the request."""
    NODE_NAME = "NodeName"
    """A pod that names its node, past the scheduler."""
    OWNED_KEY = "OwnedKey"
    """A key or gate that only Sluice may write."""

    PAST_TERM = "PastTerm"
    """A release by a leader whose term is over."""

    # What the validating pass found
    REWRITE_MISSING = "RewriteMissing"
    """The pod lacks, or another webhook altered, what its policy demands."""

    # Documents kept as custom resources
    INVALID_DOCUMENT = "InvalidDocument"
    """A document with errors, or one without which others would have some."""
    MIRRORED_DOCUMENT = "MirroredDocument"
    """An object that mirrors a file: the file is what to change."""

    INTERNAL_ERROR = "InternalError"
    """A fault of Sluice; answered as the failure mode says."""


PERMANENT = frozenset(
    {
        Reason.INVALID_QUANTITY,
        Reason.REQUEST_WITHOUT_LIMIT,
        Reason.TOO_MANY_CONTAINERS,
        Reason.OVER_CEILING,
        Reason.OVER_GUARANTEE,
    }
)
"""Refusals of a pod that no change outside the pod lifts, short of another quota."""
