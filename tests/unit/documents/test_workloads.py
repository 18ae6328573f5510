# SPDX-License-Identifier: Apache-2.0
"""`Settings.spec.workloads` adds kinds or replaces them; what is wrong is told with its field."""

import pytest

from policies.model.workload import PodForm
from policies.workloads.paths import parse_factor, parse_path
from tests.unit.documents.loading import COMPLETE, Loader, document, errors, lines, served

VOLCANO = """
    workloads:
    - group: batch.volcano.sh
      resource: jobs
      kind: Job
      versions: [v1alpha1]
      templates:
      - path: spec.tasks[*].template
        replicas: ["spec.tasks[*].replicas", spec.size - 1]
    """


def test_a_kind_is_read(load_texts: Loader) -> None:
    policies = served(load_texts(COMPLETE, document("Settings", "cluster", VOLCANO)))

    (kind,) = policies.settings.workloads
    assert policies.workloads.of_resource("batch.volcano.sh", "jobs") == kind
    assert policies.workloads.of_resource("batch", "jobs") is not None
    (template,) = kind.templates
    assert template.path == parse_path("spec.tasks[*].template")
    assert template.replicas == tuple(
        map(parse_factor, ("spec.tasks[*].replicas", "spec.size - 1"))
    )
    assert (template.form, template.owner, template.account) == (PodForm.TEMPLATE, "Job", "")


def test_every_field_of_a_template_is_read(load_texts: Loader) -> None:
    spec = """
        workloads:
        - group: example.com
          resource: models
          kind: Model
          templates:
          - path: spec.server
            pod: Spec
            name: server
            fallback: spec.default
            counted: false
            containers: [{path: "extra[*]"}, {path: main, name: engine}]
            inherits: [metadata]
            owner: ReplicaSet
            account: system:serviceaccount:models:operator
        """
    (kind,) = served(load_texts(COMPLETE, document("Settings", "cluster", spec))).settings.workloads
    (template,) = kind.templates

    assert kind.versions == ("*",)
    assert template.form is PodForm.SPEC
    assert (template.name, template.owner) == ("server", "ReplicaSet")
    assert template.account == "system:serviceaccount:models:operator"
    assert template.fallback == ("spec", "default")
    assert template.replicas is None
    assert [(source.path, source.name) for source in template.containers] == [
        (parse_path("extra[*]"), "main"),
        (("main",), "engine"),
    ]
    assert template.inherits == (("metadata",),)


def test_kinds_are_part_of_the_generation(load_texts: Loader) -> None:
    one = served(load_texts(COMPLETE, document("Settings", "cluster", VOLCANO)))
    other = VOLCANO.replace("[v1alpha1]", "[v1]")
    two = served(load_texts(COMPLETE, document("Settings", "cluster", other)))

    assert one.generation != two.generation


def test_that_a_shipped_kind_is_replaced_is_noted(load_texts: Loader) -> None:
    spec = VOLCANO.replace("batch.volcano.sh", "ray.io").replace("kind: Job", "kind: RayJob")
    result = load_texts(COMPLETE, document("Settings", "cluster", spec))

    (note,) = lines(result)
    assert note.startswith("b.yaml:8:11: note: Settings/cluster: spec.workloads[0].kind: ")
    assert note.endswith("replaces the shipped kind of its name")
    kind = served(result).workloads.of_manifest("ray.io/v1", "RayJob")
    assert kind is not None
    assert len(kind.templates) == 1


TEMPLATE = "spec.workloads[0].templates[0]"
PATH = (
    "must be a path such as spec.template, spec.groups[*].template or spec.replicaSpecs.*.template"
)
NUMBER = (
    "must be the path of a number, such as spec.replicas, or less some of it, such as spec.size - 1"
)


@pytest.mark.parametrize(
    ("written", "instead", "error"),
    [
        (
            "spec.tasks[*].template",
            "spec.tasks[0].template",
            f'{TEMPLATE}.path: {PATH}; is "spec.tasks[0].template"',
        ),
        ("spec.tasks[*].template", "$.spec", f"{TEMPLATE}.path: must be a path such as"),
        ("spec.tasks[*].template", "spec..template", f"{TEMPLATE}.path: must be a path such as"),
        ("spec.tasks[*].template", '"*.template"', f"{TEMPLATE}.path: must be a path such as"),
        (
            '"spec.tasks[*].replicas"',
            "spec.size - one",
            f'{TEMPLATE}.replicas[0]: {NUMBER}; is "spec.size - one"',
        ),
        (
            '"spec.tasks[*].replicas"',
            '"spec.others[*].replicas"',
            f"{TEMPLATE}.replicas[0]: must begin as the template's path does, up to its last *",
        ),
        (
            '"spec.tasks[*].replicas"',
            '"spec.tasks[*].more[*].replicas"',
            f"{TEMPLATE}.replicas[0]: must begin as the template's path does",
        ),
        (
            "replicas: [",
            "counted: false\n        replicas: [",
            f"{TEMPLATE}.replicas: has no effect with `counted: false`; leave one of them out",
        ),
        (
            "replicas: [",
            "inherits: [spec.*.meta]\n        replicas: [",
            f"{TEMPLATE}.inherits[0]: must name one place, without * and [*]",
        ),
        (
            "replicas: [",
            "fallback: spec.template\n        replicas: [",
            f"{TEMPLATE}.fallback: goes with a path that has no * or [*]",
        ),
        (
            "replicas: [",
            "containers: [{path: main}]\n        replicas: [",
            f"{TEMPLATE}.containers: needs `pod: Spec`: a pod template has all its containers",
        ),
        ("group: batch.volcano.sh", "group: batch", 'spec.workloads[0].group: "batch" is a group'),
        ("kind: Job", "kind: job", "spec.workloads[0].kind: must be a capital letter"),
        ("resource: jobs", "resource: Jobs", "spec.workloads[0].resource: must be"),
        ("resource: jobs\n      ", "", "spec.workloads[0].resource: is missing"),
        ("replicas: [", "repliques: [", f"{TEMPLATE}.repliques: unknown field"),
    ],
)
def test_what_is_wrong_with_a_kind_is_told_with_its_field(
    load_texts: Loader, written: str, instead: str, error: str
) -> None:
    assert written in VOLCANO
    result = load_texts(
        COMPLETE, document("Settings", "cluster", VOLCANO.replace(written, instead, 1))
    )

    (found,) = errors(result)
    assert f"error: Settings/cluster: {error}" in found


def test_kinds_and_resources_are_named_once(load_texts: Loader) -> None:
    head, again = VOLCANO.rstrip().split("workloads:\n")
    other = again.replace("kind: Job", "kind: Other")

    def found(more: str) -> list[str]:
        spec = f"{head}workloads:\n{again}\n{more}"
        result = load_texts(COMPLETE, document("Settings", "cluster", spec))
        return [line.partition("cluster: ")[2] for line in errors(result)]

    assert found(again) == ['spec.workloads[1]: "Job" is in this list twice']
    assert found(other) == ["spec.workloads[1].resource: is the plural name of Job already"]
