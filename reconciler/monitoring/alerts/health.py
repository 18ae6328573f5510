# SPDX-License-Identifier: Apache-2.0
"""Alerts on Sluice itself: who leads, what is served, what fails to be written."""

from typing import Final

from reconciler.monitoring.rules import Alert, Group, Level, Severity

_FACTS_SECONDS: Final = 120
_PLAN_SECONDS: Final = 1
_CERTIFICATE_DAYS: Final = 14
_DAY_SECONDS: Final = 86_400

HEALTH: Final = Group(
    "sluice-health-alerts",
    (
        Alert(
            "SluiceGone",
            Level.SLUICE,
            Severity.CRITICAL,
            "5m",
            "absent(sluice_policy_set_info)",
            "No process of Sluice is seen",
            "None runs, or Prometheus does not reach them. While none runs, GPU pods are refused "
            "and nothing that waits for quota is released.",
        ),
        Alert(
            "SluiceNoLeader",
            Level.SLUICE,
            Severity.CRITICAL,
            "5m",
            "max(sluice_leader) == 0",
            "Nobody leads",
            "Pods go on being decided on, and nothing that waits for quota is released, nothing "
            "is taken back, nothing is metered.",
        ),
        Alert(
            "SluiceSeveralLeaders",
            Level.SLUICE,
            Severity.CRITICAL,
            "2m",
            "sum(sluice_leader) > 1",
            "{{ $value }} processes say that they lead",
            "Ceilings hold all the same, since what is under way stands on the Lease; but this is "
            "a fault, or there are two installations.",
        ),
        Alert(
            "SluiceControllersFailing",
            Level.SLUICE,
            Severity.WARNING,
            "1m",
            "sum(increase(sluice_controllers_failures_total[30m])) > 0",
            "Controllers of Sluice died {{ $value | humanize }} times in 30 minutes",
            "Another process leads after each. It is a fault of Sluice, with a traceback in the "
            "log.",
        ),
        Alert(
            "SluiceDocumentsBroken",
            Level.SLUICE,
            Severity.WARNING,
            "5m",
            "max by (instance) (sluice_policy_set_broken) == 1",
            "The policy documents of {{ $labels.instance }} are broken",
            "It goes on with the last good set, and takes up no change until they are mended.",
        ),
        Alert(
            "SluiceDocumentsDiffer",
            Level.SLUICE,
            Severity.WARNING,
            "15m",
            "count(count by (generation) (sluice_policy_set_info == 1)) > 1",
            "Processes of Sluice decide by {{ $value }} different sets of documents",
            "What a pod gets depends on which of them is asked.",
        ),
        Alert(
            "SluiceFactsStale",
            Level.SLUICE,
            Severity.WARNING,
            "5m",
            f"max by (instance) (sluice_facts_age_seconds) > {_FACTS_SECONDS}",
            "{{ $labels.instance }} has not heard of nodes and namespaces for "
            "{{ $value | humanizeDuration }}",
            "It decides on what it last knew, and says so in its answers.",
        ),
        Alert(
            "SluicePlansSlow",
            Level.SLUICE,
            Severity.WARNING,
            "15m",
            f"sluice:plan_duration_seconds:p99_5m > {_PLAN_SECONDS}",
            "Controller {{ $labels.controller }} takes {{ $value | humanizeDuration }} for a plan",
            "Pods are released so much later.",
        ),
        Alert(
            "SluiceReleasesFailing",
            Level.SLUICE,
            Severity.WARNING,
            "10m",
            # A conflict is somebody else's write; the next look shows it.
            "sum by (error) (increase("
            'sluice_release_failures_total{error!="ConflictError"}[15m])) > 0',
            "The API server refused {{ $value | humanize }} releases: {{ $labels.error }}",
            "They are tried again. Until then the pods wait, and are counted as charged.",
        ),
        Alert(
            "SluiceMirrorFailing",
            Level.SLUICE,
            Severity.WARNING,
            "10m",
            "sum by (error) (increase(sluice_mirror_failures_total[15m])) > 0",
            "Documents could not be mirrored {{ $value | humanize }} times: {{ $labels.error }}",
            "What `kubectl get` shows of documents is not what is served.",
        ),
        Alert(
            "SluiceStatusesFailing",
            Level.SLUICE,
            Severity.WARNING,
            "10m",
            "sum by (error) (increase(sluice_status_failures_total[15m])) > 0",
            "Statuses of tenants were not written {{ $value | humanize }} times: "
            "{{ $labels.error }}",
            "What `kubectl get tenants` shows is old, and `whenOverQuota: Deny` refuses by it.",
        ),
        Alert(
            "SluiceAuditLinesLost",
            Level.SLUICE,
            Severity.CRITICAL,
            "1m",
            "sum by (instance, cause) (increase(sluice_audit_lines_dropped_total[15m])) > 0",
            "{{ $value | humanize }} lines of the audit log are lost: {{ $labels.cause }}",
            "{{ $labels.instance }} could not write them. The decisions stand; there is no record "
            "of them, and usage may be missing.",
        ),
    ),
)

CERTIFICATES: Final = Group(
    "sluice-certificate-alerts",
    (
        Alert(
            "SluiceCertificateEndsSoon",
            Level.SLUICE,
            Severity.WARNING,
            "1h",
            # 0: none is served.
            "min by (instance) (sluice_certificate_expiry_timestamp_seconds > 0) - time()\n"
            f"< {_CERTIFICATE_DAYS} * {_DAY_SECONDS}",
            "The certificate of {{ $labels.instance }} ends in {{ $value | humanizeDuration }}",
            "It should have been renewed long before. When it has ended the API server takes no "
            "answer of the webhook: GPU pods are refused.",
        ),
        Alert(
            "SluiceCertificateEnding",
            Level.SLUICE,
            Severity.CRITICAL,
            "5m",
            "min by (instance) (sluice_certificate_expiry_timestamp_seconds > 0) - time()\n"
            f"< 2 * {_DAY_SECONDS}",
            "The certificate of {{ $labels.instance }} ends in {{ $value | humanizeDuration }}",
            "When it has ended the API server takes no answer of the webhook: GPU pods are "
            "refused.",
        ),
        Alert(
            "SluiceCertificateWritesFailing",
            Level.SLUICE,
            Severity.WARNING,
            "10m",
            # A conflict is somebody else's write; the next look shows it.
            "sum by (error) (increase("
            'sluice_certificate_failures_total{error!="ConflictError"}[15m])) > 0',
            "The leader could not write certificates {{ $value | humanize }} times: "
            "{{ $labels.error }}",
            "It cannot renew them, or not say whom the webhook's callers are to trust.",
        ),
        Alert(
            "SluiceCertificateReloadsFailing",
            Level.SLUICE,
            Severity.WARNING,
            "1m",
            'sum by (instance) (increase(sluice_tls_reloads_total{result="Failure"}[30m])) > 0',
            "{{ $labels.instance }} could not take up its new certificate",
            "It tried {{ $value | humanize }} times in 30 minutes and goes on with the old one.",
        ),
    ),
)
