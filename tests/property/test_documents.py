# SPDX-License-Identifier: Apache-2.0
"""What a load says of documents beside what the decision core makes of them."""

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from policies.cel import Environment
from policies.cel.environment import build_environment
from policies.documents.load import LoadResult, SourceText, load
from policies.model.policyset import PolicySet
from tests.support.builders import catalog, container, mutate, pod

BOARDS = "products: [NVIDIA-H100-80GB-HBM3]"
FORMS = {
    "board": f"mode: Exclusive\n  {BOARDS}",
    "mps-4": f"mode: MPS\n  replicas: 4\n  {BOARDS}",
    "turns-4": f"mode: TimeSlice\n  replicas: 4\n  {BOARDS}",
    "turns-9": f"mode: TimeSlice\n  replicas: 9\n  {BOARDS}",
    "many-4": f"mode: TimeSlice\n  replicas: 4\n  allowMultiple: true\n  {BOARDS}",
    "hami-4": f"mode: TimeSlice\n  replicas: 4\n  limiter: HAMiCore\n  {BOARDS}",
}
SHIPPED = [f"h100-{shape}" for shape in ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb")]
CANDIDATES = st.lists(st.sampled_from([*FORMS, *SHIPPED]), min_size=2, unique=True)
SHIFT = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}
ENVIRONMENT: Environment = build_environment()


def document(kind: str, name: str, spec: str) -> str:
    head = f"apiVersion: sluice.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}"
    return f"{head}\nspec:\n  {spec}\n"


def loaded(memory: str, candidates: list[str], minimum: str = "None") -> LoadResult:
    fit = f"{{memory: {memory}, compute: {{annotation: a/c}}, candidates: {candidates}}}"
    limit = f"{{fromFit: true, minimumStrength: {minimum}}}"
    texts = [
        *(document("SharingProfile", name, spec) for name, spec in FORMS.items()),
        document("Tenant", "chat", "namespaces: {names: [chat]}"),
        document("GPUPolicy", "fit", f"rewrite: {{fit: {fit}}}\n  memoryLimit: {limit}"),
    ]
    source = SourceText("all.yaml", "---\n".join(texts).encode())
    return load([source], catalog=catalog(), environment=ENVIRONMENT)


def served(result: LoadResult) -> PolicySet:
    assert result.policy_set is not None, result.problems
    return result.policy_set


@given(
    CANDIDATES,
    st.sampled_from([1, 9, 15, 19, 35, 60, 90]),
    st.sampled_from([1, 11, 12, 20, 25, 40, 50, 100]),
    st.integers(1, 3),
    st.sampled_from(["None", "Cooperative", "Process"]),
)
def test_a_candidate_that_is_called_never_given_is_never_given(
    candidates: list[str], gib: int, percent: int, devices: int, minimum: str
) -> None:
    result = loaded("{annotation: a/m}", candidates, minimum)
    assume(result.policy_set is not None)  # else none of them is as strong
    warned = {
        candidates[int(problem.path.rpartition("[")[2].rstrip("]"))]
        for problem in result.problems
        if "is given only where no node offers" in problem.message
    }
    asking = pod(
        container(gpus=str(devices)), annotations={"a/m": f"{gib}Gi", "a/c": f"{percent}%"}
    )
    decision = mutate(asking, served(result))

    assert decision.profile is None or decision.profile not in warned


@given(st.integers(1, 2**46), st.sampled_from(list(SHIFT)), st.booleans())
def test_memory_is_whole_mib_and_never_less_than_is_written(
    number: int, unit: str, quotes: bool
) -> None:
    text = f"{number}{unit}"
    size = number << SHIFT[unit]
    result = loaded(f"{{default: {f'{text!r}' if quotes else text}}}", ["board"])
    is_possible = 2**20 <= size <= 2**46
    assert (result.policy_set is not None) == is_possible

    if result.policy_set is not None:
        fit = result.policy_set.policies[0].fit
        assert fit is not None
        assert fit.memory.default_mib is not None
        assert 0 <= fit.memory.default_mib - Fraction(size, 2**20) < 1
