# SPDX-License-Identifier: Apache-2.0
"""Every name that Sluice owns in the Kubernetes API, in one place."""

API_VERSION = "sluice.dev/v1alpha1"

USER_PREFIX = "sluice.dev/"
"""Annotations and labels that people write."""

STATE_PREFIX = "state.sluice.dev/"
"""Annotations and labels that only Sluice writes."""

DECISION = "state.sluice.dev/decision"
"""Annotation: the claim of the mutating pass (policies.rewrite.claim)."""

CHARGE = "state.sluice.dev/charge"
"""Annotation: what a released pod is charged (policies.quota.charge)."""

TERM = "state.sluice.dev/term"
"""Annotation: the leader's term in which a pod was released (policies.model.term)."""

NOTICE = "state.sluice.dev/notice"
"""Annotation: that a pod will be taken back, for whom, by which rule and when."""

REASON = "state.sluice.dev/reason"
"""Annotation: why a pod waits."""

GANG_LABEL = "sluice.dev/gang"
GANG_SIZE = "sluice.dev/gang-size"
"""Label and annotation of pods that are released all or none: the name, and how many they are."""

EVICTION_COST = "sluice.dev/eviction-cost"
"""Annotation: an integer; among equals the pod with the lowest is taken back first."""

SOURCE_LABEL = "state.sluice.dev/source"
SOURCE_FILE = "file"
"""Label of a custom resource that mirrors a document of a file."""

FILE = "state.sluice.dev/file"
GENERATION = "state.sluice.dev/generation"
DIGEST = "state.sluice.dev/digest"
"""Annotations of such a mirror: the file below the policy directory, the generation of the set that
it was last written from, and a hash of what was written."""

INTENTS = "state.sluice.dev/intents"
"""Annotation of the Lease: the releases and evictions that its holder may have sent."""

VOIDED = "state.sluice.dev/voided"
"""Annotation that a leader changes on a pod so that no patch of a past leader can land."""

TENANT_LABEL = "state.sluice.dev/tenant"
COHORT_LABEL = "state.sluice.dev/cohort"
"""Labels of pods in forms without a wall: whose they are, for who may sit beside them."""

QUOTA_GATE = "sluice.dev/quota"
"""Scheduling gate of every GPU pod of a tenant, until its quota is charged."""

FORCED = "state.sluice.dev/forced"
"""Annotation of a pod whose gate was taken off past its quota: by whom, when and why."""

BREAK_GLASS_GROUP = "sluice.dev:break-glass"
"""User group that may take the gate off. Nobody is in it: it is impersonated, which takes a right
of its own."""

GPU_MEMORY = "sluice.dev/gpu-memory"
"""Annotation of pods: the memory that each GPU, or share of one, must have, such as 8Gi."""

WORK_LABEL = "sluice.dev/work"
"""Label of pods that says what they do, `inference` or `training`, where no owner tells."""

INTERCONNECT = "sluice.dev/interconnect"
"""Label of nodes that says what links their GPUs: `NVLink`, `Mixed` or `PCIe`."""

LOAD_FELL = "state.sluice.dev/load-fell-at"
"""Annotation of nodes: when their load last fell while pods waited for that; it wakes them."""

CERTIFICATES_LABEL = "sluice.dev/certificates"
CERTIFICATES_BY_LEADER = "leader"
"""Label of the Secrets that the leader keeps certificates in; it writes to no other."""

ROTATE = "sluice.dev/rotate"
"""Annotation of such a Secret: renew what it holds now; taken off when that has begun."""

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
VOID = "void"
"""The value of NVIDIA_VISIBLE_DEVICES that makes the container runtime inject nothing."""

HOSTNAME_LABEL = "kubernetes.io/hostname"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
