# SPDX-License-Identifier: Apache-2.0
"""What Sluice fails to plan, to write and to renew."""

from typing import Final

from tests.integration.monitoring.cases.case import Case, histogram

_PLAN: Final = "sluice_plan_duration_seconds"
_EXPIRY: Final = 'sluice_certificate_expiry_timestamp_seconds{instance="s1"}'

WRITING: Final = (
    Case(
        "SluicePlansSlow",
        histogram(_PLAN, 'controller="quota"', "0+50x400", "0+100x400"),
        40,
        {"controller": "quota"},
        "Controller quota takes 4.9s for a plan",
        "Pods are released so much later.",
        (histogram(_PLAN, 'controller="quota"', "0+100x400", "0+100x400"),),
        recalls=True,
    ),
    Case(
        "SluiceReleasesFailing",
        {'sluice_release_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "The API server refused 30 releases: ForbiddenError",
        "They are tried again. Until then the pods wait, and are counted as charged.",
        (
            {'sluice_release_failures_total{error="ConflictError"}': "0+2x400"},
            {'sluice_release_failures_total{error="ForbiddenError"}': "5x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceMirrorFailing",
        {'sluice_mirror_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "Documents could not be mirrored 30 times: ForbiddenError",
        "What `kubectl get` shows of documents is not what is served.",
        ({'sluice_mirror_failures_total{error="ForbiddenError"}': "5x400"},),
        recalls=True,
    ),
    Case(
        "SluiceStatusesFailing",
        {'sluice_status_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "Statuses of tenants were not written 30 times: ForbiddenError",
        "What `kubectl get tenants` shows is old, and `whenOverQuota: Deny` refuses by it.",
        ({'sluice_status_failures_total{error="ForbiddenError"}': "5x400"},),
        recalls=True,
    ),
    Case(
        "SluiceAuditLinesLost",
        {'sluice_audit_lines_dropped_total{instance="s1",cause="WriteFailed"}': "0x19 30x400"},
        25,
        {"instance": "s1", "cause": "WriteFailed"},
        "30 lines of the audit log are lost: WriteFailed",
        "s1 could not write them. The decisions stand; there is no record of them, and usage may "
        "be missing.",
        ({'sluice_audit_lines_dropped_total{instance="s1",cause="WriteFailed"}': "30x400"},),
        recalls=True,
    ),
    Case(
        "SluiceCertificateEndsSoon",
        {_EXPIRY: f"{10 * 86_400}x400"},
        120,
        {"instance": "s1"},
        "The certificate of s1 ends in 9d 22h 0m 0s",
        "It should have been renewed long before. When it has ended the API server takes no "
        "answer of the webhook: GPU pods are refused.",
        (
            {_EXPIRY: f"{100 * 86_400}x400"},
            # Nothing is served over TLS.
            {_EXPIRY: "0x400"},
        ),
    ),
    Case(
        "SluiceCertificateEnding",
        {_EXPIRY: f"{86_400}x400"},
        60,
        {"instance": "s1"},
        "The certificate of s1 ends in 23h 0m 0s",
        "When it has ended the API server takes no answer of the webhook: GPU pods are refused.",
        ({_EXPIRY: f"{10 * 86_400}x400"}, {_EXPIRY: "0x400"}),
    ),
    Case(
        "SluiceCertificateWritesFailing",
        {'sluice_certificate_failures_total{error="ForbiddenError"}': "0+2x400"},
        30,
        {"error": "ForbiddenError"},
        "The leader could not write certificates 30 times: ForbiddenError",
        "It cannot renew them, or not say whom the webhook's callers are to trust.",
        (
            {'sluice_certificate_failures_total{error="ConflictError"}': "0+2x400"},
            {'sluice_certificate_failures_total{error="ForbiddenError"}': "5x400"},
        ),
        recalls=True,
    ),
    Case(
        "SluiceCertificateReloadsFailing",
        {'sluice_tls_reloads_total{instance="s1",result="Failure"}': "0x19 3x400"},
        30,
        {"instance": "s1"},
        "s1 could not take up its new certificate",
        "It tried 3 times in 30 minutes and goes on with the old one.",
        (
            {'sluice_tls_reloads_total{instance="s1",result="Failure"}': "0x400"},
            {'sluice_tls_reloads_total{instance="s1",result="Success"}': "0x19 3x400"},
        ),
        recalls=True,
    ),
)
