# SPDX-License-Identifier: Apache-2.0
"""Every name that Sluice owns in the Kubernetes API, in one place."""

API_VERSION = "sluice.dev/v1alpha1"

USER_PREFIX = "sluice.dev/"
"""Annotations and labels that people write."""

STATE_PREFIX = "state.sluice.dev/"
"""Annotations and labels that only Sluice writes."""

DECISION = "state.sluice.dev/decision"
"""Annotation: the claim of the mutating pass (policies.rewrite.claim)."""

TENANT_LABEL = "state.sluice.dev/tenant"
COHORT_LABEL = "state.sluice.dev/cohort"
"""Labels of pods in forms without a wall: whose they are, for who may sit beside them."""

QUOTA_GATE = "sluice.dev/quota"
"""Scheduling gate of every GPU pod of a tenant, until its quota is charged."""

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
VOID = "void"
"""The value of NVIDIA_VISIBLE_DEVICES that makes the container runtime inject nothing."""

HOSTNAME_LABEL = "kubernetes.io/hostname"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
