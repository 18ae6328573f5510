# SPDX-License-Identifier: Apache-2.0
"""Facts are what kubectl prints of Nodes and Namespaces, with GPUs counted exactly."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from policies.documents.facts import parse_facts
from policies.documents.source import SourceText
from policies.model.facts import Facts
from policies.vendors import Catalog

NOW = datetime(2031, 1, 1, tzinfo=UTC)
LIST = """\
apiVersion: v1
kind: List
now: "2031-12-12T08:00:00.5+01:00"
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: gpu-0
    creationTimestamp: 2030-01-01T00:00:00Z
    labels: {pool: shared, nvidia.com/gpu.replicas: "4"}
  spec: {providerID: x}
  status:
    allocatable:
      cpu: 31850m
      memory: 1Ti
      nvidia.com/gpu: "8"
      nvidia.com/gpu.shared: 32
      nvidia.com/mig-1g.10gb: 1k
      amd.com/gpu: "0"
      example.com/fpga: "2"
    capacity: {nvidia.com/gpu: "9"}
- apiVersion: v1
  kind: Namespace
  metadata: {name: chat, labels: {team: chat}, annotations: {note: hi}}
metadata: {resourceVersion: ""}
"""


def parse(catalog: Catalog, text: str | bytes) -> tuple[Facts | None, list[str]]:
    raw = text.encode() if isinstance(text, str) else text
    facts, problems = parse_facts(SourceText("facts.yaml", raw), catalog=catalog, now=NOW)
    return facts, [str(problem) for problem in problems]


def facts_of(catalog: Catalog, text: str) -> Facts:
    facts, problems = parse(catalog, text)
    assert facts is not None, problems
    return facts


def test_nodes_have_their_labels_and_gpus(catalog: Catalog) -> None:
    nodes = facts_of(catalog, LIST).cluster.nodes

    assert nodes is not None
    assert [node.name for node in nodes] == ["gpu-0"]
    assert nodes[0].labels == {"pool": "shared", "nvidia.com/gpu.replicas": "4"}
    assert nodes[0].allocatable == {
        "nvidia.com/gpu": 8,
        "nvidia.com/gpu.shared": 32,
        "nvidia.com/mig-1g.10gb": 1000,
        "amd.com/gpu": 0,
    }


def test_namespaces_have_their_labels_and_the_one_of_their_name(catalog: Catalog) -> None:
    namespace = facts_of(catalog, LIST).cluster.namespaces["chat"]

    assert namespace.labels == {"team": "chat", "kubernetes.io/metadata.name": "chat"}
    assert namespace.annotations == {"note": "hi"}


def test_the_time_is_the_files_where_it_has_one(catalog: Catalog) -> None:
    facts = facts_of(catalog, LIST)

    zone = timezone(timedelta(hours=1))
    assert facts.now == datetime(2031, 12, 12, 8, 0, 0, 500_000, tzinfo=zone)
    assert facts.stale_seconds is None
    assert facts_of(catalog, "kind: List\nitems: []\n").now == NOW


@pytest.mark.parametrize("time", ["2031-12-12T08:00:00Z", "2031-12-12T08:00:00.123456789Z"])
def test_a_time_is_rfc_3339(catalog: Catalog, time: str) -> None:
    now = facts_of(catalog, f"kind: List\nnow: {time}\nitems: []\n").now

    assert now.replace(microsecond=0) == datetime(2031, 12, 12, 8, tzinfo=UTC)


def test_without_any_node_nodes_are_unknown(catalog: Catalog) -> None:
    assert facts_of(catalog, "kind: List\nitems: []\n").cluster.nodes is None


def test_several_lists_are_one(catalog: Catalog) -> None:
    one = "kind: List\nitems:\n- {kind: Node, metadata: {name: a}}\n"
    other = "kind: List\nitems:\n- {kind: Namespace, metadata: {name: a}}\n"
    facts = facts_of(catalog, f"{one}---\n{other}")

    assert facts.cluster.nodes is not None
    assert facts.cluster.nodes[0].allocatable == {}
    assert list(facts.cluster.namespaces) == ["a"]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"8"', '"7.5"', '16:23: error: List: items[0].status.allocatable["nvidia.com/gpu"]: "nvi'),
        ('"8"', "500m", '"nvidia.com/gpu" counts devices: "500m" is no whole number'),
        ('"8"', "-1", "counts devices: -1 is no whole number"),
        ('"8"', "0.5", "counts devices: 0.5 is no whole number"),
        ('"8"', "many", "'many' is not a quantity"),
        ('"8"', "[8]", "is not a quantity"),
        ('"8"', "true", "is not a quantity"),
        ('replicas: "4"', "replicas: 4", 'must be text, is 4; put it in quotes: "4"'),
        ("labels: {pool: shared, ", "labels: {a b: shared, ", '"a b" is no label key'),
        ("labels: {team: chat}", "labels: [team]", "must be a mapping of texts"),
        ("name: gpu-0", "name: ", "items[0].metadata.name: must be a name"),
        ("kind: List", "kind: Node", 'facts are a Kubernetes List; this is "Node"'),
        ("now:", "nows:", '3:1: error: List: nows: unknown field; did you mean "now"?'),
        ('"2031-12-12T08:00:00.5+01:00"', "tomorrow", '"tomorrow" is no RFC 3339 time'),
        ('"2031-12-12T08:00:00.5+01:00"', '"2031-13-12T08:00:00Z"', "is no RFC 3339 time"),
        ('"2031-12-12T08:00:00.5+01:00"', '"2031-12-12"', "is no RFC 3339 time"),
        ('"2031-12-12T08:00:00.5+01:00"', "1", "1 is no RFC 3339 time"),
        (
            "kind: Namespace\n  metadata: {name: chat",
            "kind: Node\n  metadata: {name: gpu-0",
            "twice",
        ),
        ("allocatable:", "allocatable: 5\n    x:", "must be a mapping of resource names"),
        ("      cpu: 31850m", "      nvidia.com/gpu: 1", "is written twice"),
    ],
)
def test_facts_that_cannot_be_are_refused(catalog: Catalog, old: str, new: str, error: str) -> None:
    assert old in LIST
    facts, problems = parse(catalog, LIST.replace(old, new))

    assert facts is None
    assert any(error in problem for problem in problems), problems


@pytest.mark.parametrize(
    "text", ["", "---\n", "a: [", "items: []", b"\xff", "kind: List\nitems: 5"]
)
def test_what_is_no_list_is_refused(catalog: Catalog, text: str | bytes) -> None:
    facts, problems = parse(catalog, text)

    assert facts is None
    assert problems


def test_the_time_is_written_once(catalog: Catalog) -> None:
    text = "kind: List\nnow: 2031-12-12T08:00:00Z\nitems: []\n"
    _, problems = parse(catalog, f"{text}---\n{text}")

    assert problems == ["facts.yaml:6:6: error: List: now: now is written twice"]


def test_other_objects_are_ignored_aloud(catalog: Catalog) -> None:
    facts, problems = parse(catalog, "kind: List\nitems:\n- {kind: Pod, metadata: {name: a}}\n")

    assert facts is not None
    assert problems == [
        'facts.yaml:3:3: warning: List: items[0]: ignored: a "Pod" is no fact that Sluice looks at'
    ]


def test_nodes_as_kubectl_prints_them_are_not_too_much(catalog: Catalog) -> None:
    images = "".join(
        f"    - {{names: [registry.example/image-{n}], sizeBytes: 5}}\n" for n in range(50)
    )
    node = "- kind: Node\n  metadata: {{name: n{}}}\n  status:\n    images:\n"
    text = "kind: List\nitems:\n" + "".join(node.format(n) + images for n in range(200))
    nodes = facts_of(catalog, text).cluster.nodes

    assert nodes is not None
    assert len(nodes) == 200
