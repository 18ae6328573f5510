# SPDX-License-Identifier: Apache-2.0
"""`rewrite.fit` and `memoryLimit` become what the core decides by, or say what nobody could use."""

import pytest

from policies.documents.load import LoadResult
from policies.documents.problems import Severity
from policies.model.policy import Fit, MemoryLimit, Need, Policy, UserValue
from policies.model.profile import Strength
from tests.unit.documents.loading import COMPLETE, Loader, document, errors, lines, served

FIT = "rewrite: {fit: {memory: {default: 8Gi}, candidates: [h100-1g.10gb, whole]}}"
FULL = """
    order: 10
    variables:
    - {name: stated, expression: '"12Gi"'}
    rewrite:
      fit:
        memory:
          annotation: sluice.dev/gpu-memory
          env: GPU_MEMORY_LIMIT
          expression: variables.stated
          default: 8Gi
        candidates: [h100-1g.10gb, h100-3g.40gb, whole]
        compute: {annotation: sluice.dev/gpu-compute}
        perContainer: true
    memoryLimit:
      fromFit: true
      minimumStrength: Process
      userValue: Override
      processes: {annotation: example.com/processes}
    """


def load(load_texts: Loader, spec: str) -> LoadResult:
    return load_texts(COMPLETE, document("GPUPolicy", "mine", f"order: 1\n{spec}"))


def policy(load_texts: Loader, spec: str) -> Policy:
    result = load_texts(COMPLETE, document("GPUPolicy", "mine", spec))
    return next(p for p in served(result).policies if p.name == "mine")


def fit(load_texts: Loader, memory: str) -> Fit:
    spec = f"order: 1\nrewrite: {{fit: {{memory: {memory}, candidates: [whole]}}}}"
    found = policy(load_texts, spec).fit
    assert found is not None
    return found


def test_every_field_reaches_the_policy(load_texts: Loader) -> None:
    found = policy(load_texts, FULL)

    assert found.profile is None
    assert found.fit is not None
    assert found.fit.memory.expression is not None
    assert found.fit.memory.expression.source == "variables.stated"
    assert found.fit == Fit(
        memory=Need(
            annotation="sluice.dev/gpu-memory",
            env="GPU_MEMORY_LIMIT",
            expression=found.fit.memory.expression,
            default_mib=8192,
        ),
        candidates=("h100-1g.10gb", "h100-3g.40gb", "whole"),
        compute_annotation="sluice.dev/gpu-compute",
        per_container=True,
    )
    assert found.memory_limit == MemoryLimit(
        from_fit=True,
        minimum_strength=Strength.PROCESS,
        user_value=UserValue.OVERRIDE,
        processes_annotation="example.com/processes",
    )


def test_what_is_left_out_is_not_looked_at(load_texts: Loader) -> None:
    assert fit(load_texts, "{annotation: example.com/memory}") == Fit(
        Need(annotation="example.com/memory"), ("whole",)
    )
    assert policy(load_texts, "order: 1\nrewrite: {profile: whole}").memory_limit is None


def test_a_limit_has_the_defaults_of_the_model(load_texts: Loader) -> None:
    found = policy(load_texts, "order: 1\nrewrite: {profile: slice-4}\nmemoryLimit: {value: 4Gi}")

    assert found.memory_limit == MemoryLimit(value_mib=4096)


@pytest.mark.parametrize(
    ("written", "mib"),
    [
        ("8Gi", 8192),
        ("8192Mi", 8192),
        ("8589934592", 8192),
        ('"8589934592"', 8192),
        ("8G", 7630),
        ("8e9", 7630),
        ('"8e9"', 7630),
        ("1.5Gi", 1536),
        ("1Mi", 1),
        ("1048577", 2),
        ("64Ti", 64 * 1024 * 1024),
    ],
)
def test_memory_is_read_as_kubernetes_writes_it(load_texts: Loader, written: str, mib: int) -> None:
    assert fit(load_texts, f"{{default: {written}}}").memory.default_mib == mib


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("8", "8 is less than 1 MiB; write a unit, such as 8Gi"),
        ('"8"', '"8" is less than 1 MiB; write a unit, such as 8Gi'),
        ("1048575", "1048575 is less than 1 MiB"),
        ("0", "0 is less than 1 MiB"),
        ("-8Gi", '"-8Gi" is less than 1 MiB'),
        ("8m", '"8m" is less than 1 MiB'),
        ("65Ti", '"65Ti" is more memory than a GPU has'),
        ("1e30", "is more memory than a GPU has"),
        ("8GB", '"8GB" is no quantity; write 8G'),
        ("8 GiB", '"8 GiB" is no quantity; write 8Gi'),
        ("8gi", '"8gi" is no quantity; write 8Gi'),
        ("1.5gib", '"1.5gib" is no quantity; write 1.5Gi'),
        ("lots", '"lots" is no quantity; write it as 8Gi or 8192Mi'),
        ('"8Gi "', '"8Gi " is no quantity; write 8Gi'),
        ('"٨Gi"', "is no quantity"),
        ("NaN", "is no quantity"),
        ("1K", "is no quantity"),
        ('""', "is no quantity"),
        ("0.5", "must be a quantity such as 8Gi, is 0.5"),
        ("true", "must be a quantity such as 8Gi, is true"),
        ("[8Gi]", "must be a quantity such as 8Gi, is a list"),
        (f'"{"8" * 65}"', "must have at most 64 characters, has 65"),
    ],
)
@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (
            "rewrite: {{fit: {{memory: {{default: {}}}, candidates: [whole]}}}}",
            "rewrite.fit.memory.default",
        ),
        ("rewrite: {{profile: slice-4}}\nmemoryLimit: {{value: {}}}", "memoryLimit.value"),
    ],
)
def test_what_is_no_amount_of_gpu_memory_is_refused(
    load_texts: Loader, written: str, error: str, spec: str, path: str
) -> None:
    found = errors(load(load_texts, spec.format(written)))

    assert len(found) == 1, found
    assert f"error: GPUPolicy/mine: spec.{path}: " in found[0]
    assert error in found[0]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("rewrite: {fit: {memory: {}, candidates: [whole]}}", "fit.memory: must have at least one"),
        (
            "rewrite: {fit: {candidates: [whole]}}",
            "6:18: error: GPUPolicy/mine: spec.rewrite.fit.m",
        ),
        ("rewrite: {fit: {memory: {default: 8Gi}}}", "spec.rewrite.fit.candidates: is missing"),
        (
            "rewrite: {fit: {memory: {default: 8Gi}, candidates: []}}",
            "spec.rewrite.fit.candidates: must have at least one item",
        ),
        (
            "rewrite: {fit: {memory: {default: 8Gi}, candidates: [whole, whole]}}",
            'spec.rewrite.fit.candidates[1]: "whole" is in this list twice',
        ),
        (
            "rewrite: {fit: {memory: {default: 8Gi}, candidates: [whole, slice-5]}}",
            'spec.rewrite.fit.candidates[1]: there is no profile "slice-5"; did you mean "slice-4"',
        ),
        (
            "rewrite: {fit: {memory: {anotation: a, env: A}, candidates: [whole]}}",
            'spec.rewrite.fit.memory.anotation: unknown field; did you mean "annotation"?',
        ),
        (
            "rewrite: {fit: {memory: {annotation: a b}, candidates: [whole]}}",
            '6:40: error: GPUPolicy/mine: spec.rewrite.fit.memory.annotation: "a b" is no ann',
        ),
        (
            "rewrite: {fit: {memory: {annotation: state.sluice.dev/need}, candidates: [whole]}}",
            "only Sluice writes state.sluice.dev/*; use sluice.dev/* or your own",
        ),
        (
            "rewrite: {fit: {memory: {annotation: gpu-memory}, candidates: [whole]}}",
            "a pod with the annotation gpu-memory is refused: it allocates devices",
        ),
        (
            "rewrite: {fit: {memory: {env: CUDA_DEVICE_MEMORY_LIMIT_0}, candidates: [whole]}}",
            "that sets CUDA_DEVICE_MEMORY_LIMIT_0 is refused: it selects devices or undoes limit",
        ),
        (
            "rewrite: {fit: {memory: {env: 8GI}, candidates: [whole]}}",
            "memory.env: must be an environment variable's name",
        ),
        (
            "rewrite: {fit: {memory: {expression: gpus.devices}, candidates: [whole]}}",
            "6:40: error: GPUPolicy/mine: spec.rewrite.fit.memory.expression: ",
        ),
        (
            "rewrite: {fit: {memory: {default: 8Gi}, compute: {}, candidates: [whole]}}",
            "spec.rewrite.fit.compute.annotation: is missing",
        ),
        (
            "rewrite: {profile: slice-4}\nmemoryLimit: {minimumStrength: None}",
            "7:16: error: GPUPolicy/mine: spec.memoryLimit: needs a limit; write fromFit: true",
        ),
        (
            "rewrite: {profile: slice-4}\nmemoryLimit: {fromFit: false}",
            "spec.memoryLimit: needs a limit; write fromFit: true, or a value such as 8Gi",
        ),
        (
            "rewrite: {profile: slice-4}\nmemoryLimit: {fromFit: true}",
            "7:26: error: GPUPolicy/mine: spec.memoryLimit.fromFit: needs rewrite.fit",
        ),
        (
            f"{FIT}\nmemoryLimit: {{fromFit: true, value: 8Gi}}",
            "spec.memoryLimit.value: fromFit is",
        ),
        ("validate: []\nmemoryLimit: {value: 8Gi}", "spec.memoryLimit: needs rewrite: a limit is"),
        (
            f"{FIT}\nmemoryLimit: {{fromFit: true, minimumStrength: Strong}}",
            "minimumStrength: must be one of Hardware, Process, Cooperative, None; is ",
        ),
        (
            f"{FIT}\nmemoryLimit: {{fromFit: true, processes: {{annotation: state.sluice.dev/n}}}}",
            "spec.memoryLimit.processes.annotation: only Sluice writes state.sluice.dev/*",
        ),
    ],
)
def test_a_fit_or_limit_that_cannot_be_is_refused(
    load_texts: Loader, spec: str, error: str
) -> None:
    found = [line for line in lines(load(load_texts, spec)) if "GPUPolicy/mine" in line]

    assert len(found) == 1, found
    assert error in found[0]


def test_a_limit_beside_a_faulty_rewrite_is_not_called_alone(load_texts: Loader) -> None:
    spec = "rewrite: {fit: {memory: 8Gi, candidates: [whole]}}\nmemoryLimit: {fromFit: true}"
    assert len(errors(load(load_texts, spec))) == 1

    spec = "rewrite: {fit: 8Gi}\nmemoryLimit: {fromFit: true}"
    assert len(errors(load(load_texts, spec))) == 1

    spec = "rewrite: 8Gi\nmemoryLimit: {fromFit: true}"
    assert len(errors(load(load_texts, spec))) == 1


def test_a_faulty_value_is_not_called_missing(load_texts: Loader) -> None:
    spec = "rewrite: {profile: slice-4}\nmemoryLimit: {value: [1]}"

    assert len(errors(load(load_texts, spec))) == 1


def test_a_fit_that_enforces_counts_as_a_rewrite(load_texts: Loader) -> None:
    alone = COMPLETE.replace("rewrite: {profile: slice-4}", FIT)

    assert lines(load_texts(alone)) == []


def test_a_fit_behind_a_policy_that_takes_all_its_pods_is_pointed_out(load_texts: Loader) -> None:
    result = load_texts(COMPLETE, document("GPUPolicy", "mine", f"order: 2000\n{FIT}"))

    assert lines(result, Severity.WARNING) == [
        (
            "b.yaml:6:12: warning: GPUPolicy/mine: spec.rewrite: "
            "never applies: no-raw-gpu goes first and takes all its pods"
        )
    ]


def test_a_fit_for_two_vendors_competes_for_both(load_texts: Loader) -> None:
    amd = document("SharingProfile", "mi300x", "mode: Exclusive\nvendor: amd")
    both = "order: 1\nrewrite: {fit: {memory: {default: 8Gi}, candidates: [whole, mi300x]}}"
    late = "order: 2\nrewrite: {profile: mi300x}"
    texts = document("GPUPolicy", "both", both), document("GPUPolicy", "late", late)
    found = lines(load_texts(COMPLETE, amd, *texts), Severity.WARNING)

    assert [line.split(": ", 2)[2] for line in found] == [
        "GPUPolicy/no-raw-gpu: spec.rewrite: never applies: both goes first and takes all its pods",
        "GPUPolicy/late: spec.rewrite: never applies: both goes first and takes all its pods",
    ]
