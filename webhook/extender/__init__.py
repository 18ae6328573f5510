# SPDX-License-Identifier: Apache-2.0
"""The scheduler extender: what kube-scheduler asks about nodes for pods that want GPUs."""
