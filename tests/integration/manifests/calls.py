# SPDX-License-Identifier: Apache-2.0
"""The entries that an object can be sent to, and which ones it was sent to."""

from tests.support.webhook_recorder import WebhookRecorder

MUTATE, VALIDATE, OTHER = "/mutate", "/validate", "/other-pods.mutate"
WORKLOADS, CLAIMS = "/workloads.validate", "/claims.validate"
CUSTOM_WORKLOADS = "/custom-workloads.validate"
GPU, PLAIN = {MUTATE, VALIDATE}, {OTHER}
GATE = [{"name": "sluice.dev/quota"}]


def sent(recorder: WebhookRecorder) -> dict[str, set[str]]:
    """Return the entries that each object was sent to, by its name."""
    found: dict[str, set[str]] = {}
    for recorded in recorder.take():
        found.setdefault(recorded.object_name, set()).add(recorded.path)
    return found
