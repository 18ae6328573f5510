# SPDX-License-Identifier: Apache-2.0
"""What an audit line says, and what it must not say."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from policies.model.decision import Decision, Verdict, Violation
from policies.model.reasons import Reason
from policies.model.request import JsonObject, Operation, Phase, Request, User
from policies.model.settings import Mode
from reconciler.runtime.audit_record import AuditEntry, UnserializableError, redact, to_line

AT = datetime(2031, 5, 17, 12, 0, 1, 250, tzinfo=UTC)
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
TOKEN = {"name": "TOKEN", "value": "hunter2"}


def request(metadata: object = None, **changes: Any) -> Request:
    """Return the creation of a pod."""
    request = Request(
        phase=Phase.MUTATE,
        operation=Operation.CREATE,
        group="",
        resource="pods",
        subresource="",
        namespace="chat",
        name="",
        user=User("jane"),
        object={"metadata": metadata, "spec": {"containers": [{"env": [TOKEN]}]}},
        old_object=None,
        uid="b91c",
    )
    return replace(request, **changes)


DECISION = Decision(
    Verdict.ALLOWED,
    "7c1f",
    tenant="chat",
    policy="no-raw-gpu",
    profile="slice-4",
    matched=("no-raw-gpu", "fits"),
    asked={"nvidia.com/gpu": 1},
    given={"nvidia.com/gpu.shared": 1},
    charge_milli=250,
    patch=(
        {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "sluice.dev/quota"}]},
    ),
)


def line(
    given: Request | None = None, decision: Decision = DECISION, **changes: Any
) -> dict[str, Any]:
    """Return the line of a decision as a reader of the log sees it."""
    entry = AuditEntry(
        request=given or request({"name": "llm"}),
        decision=decision,
        mode=Mode.ENFORCE,
        allowed=decision.allowed,
        warnings=decision.warnings,
        at=AT,
        duration_us=420,
    )
    written = to_line(entry._replace(**changes))
    assert written.endswith(b"\n")
    assert written.count(b"\n") == 1
    found: dict[str, Any] = json.loads(written)
    return found


def test_a_line_says_who_asked_what_and_what_came_of_it() -> None:
    assert line() == {
        "time": "2031-05-17T12:00:01.000250Z",
        "uid": "b91c",
        "phase": "Mutate",
        "user": "jane",
        "namespace": "chat",
        "name": "llm",
        "generateName": None,
        "owner": None,
        "operation": "CREATE",
        "resource": "pods",
        "dryRun": False,
        "mode": "Enforce",
        "generation": "7c1f",
        "tenant": "chat",
        "matched": ["no-raw-gpu", "fits"],
        "policy": "no-raw-gpu",
        "profile": "slice-4",
        "exclusive": False,
        "verdict": "Allowed",
        "allowed": True,
        "reasons": [],
        "message": None,
        "asked": {"nvidia.com/gpu": 1},
        "given": {"nvidia.com/gpu.shared": 1},
        "chargeMilli": 250,
        "patch": [
            {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "sluice.dev/quota"}]}
        ],
        "warnings": [],
        "staleSeconds": None,
        "durationUs": 420,
    }


def test_the_time_comes_first_so_that_lines_of_several_replicas_sort() -> None:
    entry = AuditEntry(request(), DECISION, Mode.ENFORCE, True, (), AT, 0)
    assert to_line(entry).startswith(b'{"time":"2031-05-17T12:00:01.000250Z"')


def test_a_denial_names_reasons_and_message() -> None:
    violations = (Violation(Reason.NO_TENANT, "a"), Violation(Reason.NODE_NAME, "b"))
    found = line(decision=replace(DECISION, verdict=Verdict.DENIED, violations=violations))
    assert (found["verdict"], found["allowed"]) == ("Denied", False)
    assert found["reasons"] == ["NoTenant", "NodeName"]
    assert found["message"] == "sluice: [NoTenant] a; [NodeName] b"


def test_a_pod_without_a_name_is_known_by_generate_name_and_owner() -> None:
    owners = [
        {"kind": "Queue", "name": "q"},
        {"kind": "Job", "name": "nightly", "controller": True},
    ]
    found = line(request({"generateName": "nightly-", "ownerReferences": owners}))
    assert (found["name"], found["generateName"]) == (None, "nightly-")
    assert found["owner"] == {"kind": "Job", "name": "nightly"}


@pytest.mark.parametrize(
    "metadata",
    [None, 7, [], {"name": 7, "generateName": []}, {"ownerReferences": "x"},
     {"ownerReferences": [7, {"controller": "true"}, {"controller": True, "kind": {}}]}],
)  # fmt: skip
def test_malformed_metadata_costs_no_line(metadata: object) -> None:
    found = line(request(metadata))
    assert (found["name"], found["generateName"]) == (None, None)


def test_a_deletion_is_known_by_its_old_object() -> None:
    gone = request(object=None, old_object={"metadata": {"generateName": "x-"}}, name="x-1")
    assert (line(gone)["name"], line(gone)["generateName"]) == ("x-1", "x-")


@pytest.mark.parametrize(
    ("group", "resource", "subresource", "written"),
    [
        ("", "pods", "resize", "pods/resize"),
        ("apps", "deployments", "", "deployments.apps"),
        ("a.b", "c", "d", "c.a.b/d"),
    ],
)
def test_resources_are_written_as_kubectl_does(
    group: str, resource: str, subresource: str, written: str
) -> None:
    given = request(group=group, resource=resource, subresource=subresource)
    assert line(given)["resource"] == written


def test_no_name_can_forge_a_line_and_none_can_bloat_it() -> None:
    forged = 'x"}\n{"time":"2031-01-01T00:00:00Z","allowed":true}\r\u2028' + "y" * 10_000
    owner = {"kind": forged, "name": forged, "controller": True}
    found = line(
        request(
            {"name": forged, "generateName": forged, "ownerReferences": [owner]},
            uid=forged,
            namespace=forged,
            user=User(forged),
            resource=forged,
        )
    )
    for key in ("uid", "user", "namespace", "name", "generateName", "resource"):
        assert found[key] == forged[:255] + "…"
    assert found["owner"] == {"kind": forged[:255] + "…", "name": forged[:255] + "…"}


@pytest.mark.parametrize(
    ("operation", "kept"),
    [
        ({"op": "add", "path": "/spec/containers/0/env", "value": [TOKEN, VOID]},
         [{"name": "TOKEN", "value": "[redacted]"}, VOID]),
        ({"op": "add", "path": "/spec/initContainers/3/env/-", "value": VOID}, VOID),
        ({"op": "add", "path": "/spec/ephemeralContainers/0/env/0", "value": TOKEN},
         {"name": "TOKEN", "value": "[redacted]"}),
        ({"op": "add", "path": "/spec/containers/0/env/0",
          "value": {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}},
         {"name": "X", "value": "[redacted]"}),
        ({"op": "replace", "path": "/spec/containers/0/env/0/value", "value": "void"}, "void"),
        ({"op": "replace", "path": "/spec/containers/0/env/0/value", "value": "hunter2"},
         "[redacted]"),
        ({"op": "replace", "path": "/spec/containers/0/env/0/valueFrom", "value": {"a": 1}},
         "[redacted]"),
        ({"op": "add", "path": "/metadata/annotations",
          "value": {"sluice.dev/x": "1", "state.sluice.dev/decision": "{}", "password": "p"}},
         {"sluice.dev/x": "1", "state.sluice.dev/decision": "{}", "password": "[redacted]"}),
        ({"op": "add", "path": "/metadata/annotations/state.sluice.dev~1decision", "value": "{}"},
         "{}"),
        ({"op": "add", "path": "/metadata/annotations/evil-sluice.dev~1x", "value": "p"},
         "[redacted]"),
        ({"op": "replace", "path": "/metadata/annotations/team", "value": "p"}, "[redacted]"),
        ({"op": "add", "path": "/spec/containers/0/resources/limits", "value": {"a": "1"}},
         {"a": "1"}),
        ({"op": "add", "path": "/spec/containers/0/resources", "value": {}}, {}),
        ({"op": "add", "path": "/spec/containers/0/resourcesX", "value": "p"}, "[redacted]"),
        ({"op": "replace", "path": "/spec/containers/0", "value": {"env": [TOKEN]}}, "[redacted]"),
        ({"op": "replace", "path": "/spec/containers", "value": [{"env": [TOKEN]}]}, "[redacted]"),
        ({"op": "replace", "path": "/spec", "value": {"containers": []}}, "[redacted]"),
        ({"op": "replace", "path": "", "value": {"data": "p"}}, "[redacted]"),
        ({"op": "add", "path": "/spec/containers/0/args", "value": ["--password=p"]}, "[redacted]"),
        ({"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k"}}, {"key": "k"}),
        ({"op": "add", "path": "/spec/nodeSelector/a~1b", "value": "c"}, "c"),
        ({"op": "add", "path": "/spec/affinity", "value": {"a": 1}}, {"a": 1}),
        ({"op": "add", "path": "/spec/template/spec/tolerations", "value": "p"}, "[redacted]"),
    ],
)  # fmt: skip
def test_a_patch_keeps_only_values_that_are_known_to_be_harmless(
    operation: JsonObject, kept: object
) -> None:
    (found,) = redact((operation,))
    assert found == {**operation, "value": kept}


def test_a_removal_has_no_value_to_hide() -> None:
    removal = {"op": "remove", "path": "/spec/containers/0/env/2"}
    assert list(redact((removal,))) == [removal]


def test_redaction_leaves_the_patch_that_is_sent_alone() -> None:
    operation = {"op": "add", "path": "/spec/containers/0/env", "value": [dict(TOKEN)]}
    redact((operation,))
    assert operation["value"] == [TOKEN]


def test_no_variable_of_the_pod_gets_into_its_line() -> None:
    written = json.dumps(line())
    assert "hunter2" not in written
    assert "TOKEN" not in written


def test_numbers_above_64_bits_are_written_all_the_same() -> None:
    found = line(decision=replace(DECISION, asked={"nvidia.com/gpu": 3 * (2**63 - 1)}))
    assert found["asked"] == {"nvidia.com/gpu": 3 * (2**63 - 1)}
    assert found["time"] == "2031-05-17T12:00:01.000250Z"


def test_what_cannot_be_json_is_told_apart_from_a_fault() -> None:
    patch = ({"op": "add", "path": "/spec/affinity", "value": {1, 2}},)
    with pytest.raises(UnserializableError, match="set is not JSON"):
        line(decision=replace(DECISION, patch=patch))


def test_a_very_deep_value_is_no_recursion_error() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    patch = ({"op": "add", "path": "/spec/affinity", "value": deep},)
    with pytest.raises(UnserializableError):
        line(decision=replace(DECISION, patch=patch))
