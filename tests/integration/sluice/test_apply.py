# SPDX-License-Identifier: Apache-2.0
"""A pod of a tenant made with kubectl: it comes out rewritten, and its user is told."""

import json

from tests.integration.sluice.objects import (
    GPU,
    SHARED,
    Json,
    container,
    decision,
    gates,
    gpus,
    plain_pod,
    pod,
    void_containers,
)
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team

_SLICE_WARNING = (
    "sluice: nvidia.com/gpu 1 -> nvidia.com/gpu.shared 1 (1/4 of a GPU, no memory limit) "
    "by policy quarter"
)
_INSTANCE_WARNING = (
    "sluice: nvidia.com/gpu 1 -> nvidia.com/mig-1g.10gb 1 (9.8 GiB usable, hardware limit) "
    "by policy smallest-instance"
)


def test_an_applied_pod_is_rewritten_runs_and_its_user_is_told(team_a: Team) -> None:
    answer = team_a.apply(pod(container("main", gpus=1), container("beside")))

    assert answer.ok
    assert answer.out == "pod/gpu created\n"
    assert answer.warnings == (_SLICE_WARNING,)
    running = team_a.running()
    assert gpus(running) == {"main": {SHARED: "1"}}
    assert void_containers(running) == {"beside"}
    assert gates(running) == []


def test_the_pod_says_what_was_decided(team_a: Team, sluice: Running) -> None:
    team_a.create(pod())

    claim = json.loads(decision(team_a.pod()) or "")
    assert claim["policy"] == "quarter"
    assert claim["asked"] == {"main": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}
    assert claim["given"] == {"main": {SHARED: 1}}
    assert sluice.serves(claim["generation"])


def test_the_audit_log_says_who_asked_for_what_and_what_became_of_it(
    team_m: Team, sluice: Running
) -> None:
    team_m.create(pod())

    def is_real(line: Json) -> bool:
        return line["operation"] == "CREATE" and not line["dryRun"]

    lines = sluice.audited(team_m.namespace, is_real, count=2)
    assert [line["phase"] for line in lines] == ["Mutate", "Validate"]
    assert {line["uid"] for line in lines}.isdisjoint({None, ""})
    for line in lines:
        assert line["user"] == "admin"
        assert line["name"] == "gpu"
        assert (line["tenant"], line["policy"]) == ("team-m", "smallest-instance")
        assert (line["asked"], line["given"]) == ({GPU: 1}, {"nvidia.com/mig-1g.10gb": 1})
        assert line["chargeMilli"] == 125
        assert line["allowed"]


def test_a_dry_run_answers_the_same_and_leaves_nothing_but_audit_lines(
    team_m: Team, sluice: Running
) -> None:
    before = len(sluice.audit(team_m.namespace))

    answer = team_m.apply(pod(), dry_run=True)

    assert answer.ok
    assert answer.out == "pod/gpu created (server dry run)\n"
    assert answer.warnings == (_INSTANCE_WARNING,)
    lines = sluice.audited(team_m.namespace, lambda _: True, count=before + 2)[before:]
    assert [line["dryRun"] for line in lines] == [True, True]
    assert team_m.pods() == []
    assert team_m.events() == []

    real = team_m.apply(pod())
    assert real.warnings == answer.warnings


def test_a_dry_run_shows_the_pod_that_the_real_call_makes(team_m: Team) -> None:
    # The token's volume gets a random name in each call.
    asked = pod(automountServiceAccountToken=False)
    dry = team_m.kubectl("create", "--dry-run=server", "-o=json", "--filename=-", stdin=asked)
    real = team_m.kubectl("create", "-o=json", "--filename=-", stdin=asked)

    made = [json.loads(answer.out) for answer in (dry, real)]
    assert made[0]["spec"] == made[1]["spec"]
    assert decision(made[0]) == decision(made[1]) is not None


def test_a_pod_with_a_generated_name_is_rewritten(team_a: Team) -> None:
    named = pod()
    del named["metadata"]["name"]
    named["metadata"]["generateName"] = "burst-"

    answer = team_a.kubectl("create", "--filename=-", stdin=named)

    assert answer.ok, answer.error
    assert answer.warnings == (_SLICE_WARNING,)
    (made,) = team_a.placed()
    assert made["metadata"]["name"].startswith("burst-")
    assert gpus(made) == {"main": {SHARED: "1"}}


def test_a_share_asked_for_by_its_own_name_stays_and_is_pinned(team_a: Team) -> None:
    answer = team_a.apply(pod(container(gpus=1, resource=SHARED)))

    assert answer.ok, answer.error
    assert answer.warnings == ()
    assert team_a.running()["spec"]["nodeName"] == "h100-shared"


def test_a_pod_without_gpus_gets_void_in_every_container_and_no_word(team_a: Team) -> None:
    sidecar = container("sidecar", restartPolicy="Always")
    answer = team_a.apply(
        plain_pod(initContainers=[container("init", env=[{"name": "A", "value": "b"}]), sidecar])
    )

    assert answer.ok
    assert answer.warnings == ()
    running = team_a.running("plain")
    assert void_containers(running) == {"main", "init", "sidecar"}
    assert gates(running) == []
    assert decision(running) is None


def test_a_refused_pod_shows_why_at_kubectl(team_m: Team) -> None:
    answer = team_m.apply(pod(labels={"owner": "nobody"}))

    assert not answer.ok
    assert (
        "denied the request: sluice: [PolicyViolation] owner-is-named/has-owner: "
        "asks for 1 GPU for nobody: name an owner"
    ) in answer.error
    assert len(answer.error.splitlines()) == 1
    assert team_m.pods() == []
