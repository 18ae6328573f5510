# SPDX-License-Identifier: Apache-2.0
"""Texts in, one whole compiled policy set or every problem out. Reads no file and no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from jsonschema.protocols import Validator

from policies.cel import Environment
from policies.documents.capacity import check_nodes
from policies.documents.collection import Collection
from policies.documents.compiled import Compiled
from policies.documents.crosscheck import check_together
from policies.documents.document import Document
from policies.documents.exemption import compile_exemption
from policies.documents.expression_cache import ExpressionCache, Expressions
from policies.documents.field import Subject
from policies.documents.generation import generation_of
from policies.documents.kinds import Kind
from policies.documents.policy import compile_policy
from policies.documents.policytest import PolicyTestDocument, compile_test
from policies.documents.pool import compile_pool
from policies.documents.problems import Problem, has_errors, ordered
from policies.documents.profile import compile_profile
from policies.documents.reclaim import compile_reclaim
from policies.documents.schemas import build_validators
from policies.documents.settings import compile_settings
from policies.documents.shipped import shipped_profiles
from policies.documents.source import SourceText, parse_documents
from policies.documents.tenant import compile_tenant
from policies.documents.validate import check, identify, name_of
from policies.model.exemption import Exemption
from policies.model.facts import NodeFacts
from policies.model.policy import Policy
from policies.model.policyset import PolicySet
from policies.model.pool import Pool
from policies.model.profile import Profile
from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Settings
from policies.model.tenant import Tenant
from policies.vendors import Catalog

__all__ = ["LoadResult", "SourceText", "load"]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load gave. `policy_set` is None if any problem is an Error.

    `expressions` are those that it has used, for the next load to know.
    """

    policy_set: PolicySet | None
    tests: tuple[PolicyTestDocument, ...]
    problems: tuple[Problem, ...]
    expressions: Expressions = field(default_factory=dict, compare=False, repr=False)


def load(
    sources: Sequence[SourceText],
    *,
    catalog: Catalog,
    environment: Environment,
    now: datetime | None = None,
    known: Expressions | None = None,
    nodes: Sequence[NodeFacts] | None = None,
) -> LoadResult:
    """Compile all documents of all sources together. Never raises, whatever the texts.

    Where `now` is given, exemptions that have ended are among the problems; where `nodes` are,
    what they cannot bear out. `known` are the expressions of an earlier load with the same
    environment; they save time and change nothing.
    """
    expressions = ExpressionCache(environment, known)
    loading = _Loading(catalog, expressions, now)
    for source in sources:
        loading.read(source)
    documents = loading.collection()
    problems = ordered(
        [*loading.problems, *_own_problems(documents), *check_together(documents, catalog)]
    )
    tests = tuple(test.value for test in documents.tests)
    if has_errors(problems):
        return LoadResult(None, tests, problems, expressions.used)
    generation = generation_of(loading.counting)
    policy_set = _policy_set(documents, generation, catalog, environment)
    if nodes is not None:
        problems = ordered([*problems, *check_nodes(documents, policy_set, nodes)])
    return LoadResult(policy_set, tests, problems, expressions.used)


@dataclass(slots=True)
class _Loading:
    """One load while it reads. `counting` are the documents that make the generation."""

    catalog: Catalog
    expressions: ExpressionCache
    now: datetime | None
    problems: list[Problem] = field(default_factory=list)
    counting: list[Document] = field(default_factory=list)
    complete: bool = True
    unidentified: set[str] = field(default_factory=set)
    settings: list[Compiled[Settings]] = field(default_factory=list)
    tenants: list[Compiled[Tenant]] = field(default_factory=list)
    profiles: list[Compiled[Profile | None]] = field(default_factory=list)
    policies: list[Compiled[Policy]] = field(default_factory=list)
    exemptions: list[Compiled[Exemption]] = field(default_factory=list)
    pools: list[Compiled[Pool]] = field(default_factory=list)
    reclaim_policies: list[Compiled[ReclaimPolicy]] = field(default_factory=list)
    tests: list[Compiled[PolicyTestDocument]] = field(default_factory=list)
    _validators: Mapping[Kind, Validator] = field(default_factory=build_validators)

    def read(self, source: SourceText) -> None:
        parsed = parse_documents(source)
        self.complete = self.complete and parsed.complete
        self.problems += parsed.problems
        # What the text has at fault at a place need not be said of its value there again.
        told = {(fault.line, fault.column) for fault in parsed.problems}
        for document in parsed.documents:
            self._document(document, told)

    def _document(self, document: Document, told: set[tuple[int, int]]) -> None:
        kind, unidentified = identify(document)
        if unidentified is not None:
            self.unidentified.add(name_of(document))
            self.problems.append(unidentified)
        if kind is None:
            return
        subject, problems = check(document, kind, self._validators[kind])
        self.problems += [p for p in problems if (p.line, p.column) not in told]
        self._compile(kind, subject)
        if kind is not Kind.POLICY_TEST:
            self.counting.append(document)

    def _compile(self, kind: Kind, subject: Subject) -> None:
        match kind:
            case Kind.SETTINGS:
                self.settings.append(compile_settings(subject))
            case Kind.TENANT:
                self.tenants.append(compile_tenant(subject))
            case Kind.SHARING_PROFILE:
                self.profiles.append(compile_profile(subject, self.catalog))
            case Kind.GPU_POLICY:
                self.policies.append(compile_policy(subject, self.expressions))
            case Kind.EXEMPTION:
                self.exemptions.append(compile_exemption(subject, self.now))
            case Kind.GPU_POOL:
                self.pools.append(compile_pool(subject))
            case Kind.RECLAIM_POLICY:
                self.reclaim_policies.append(compile_reclaim(subject))
            case Kind.POLICY_TEST:
                self.tests.append(compile_test(subject))

    def collection(self) -> Collection:
        return Collection(
            settings=tuple(self.settings),
            tenants=tuple(self.tenants),
            profiles=tuple(self.profiles),
            policies=tuple(self.policies),
            exemptions=tuple(self.exemptions),
            pools=tuple(self.pools),
            reclaim_policies=tuple(self.reclaim_policies),
            tests=tuple(self.tests),
            shipped=shipped_profiles(self.catalog),
            complete=self.complete,
            unidentified=frozenset(self.unidentified),
        )


def _own_problems(documents: Collection) -> list[Problem]:
    """Return what the compilers found."""
    return [problem for items in documents.by_kind() for item in items for problem in item.problems]


def _policy_set(
    documents: Collection, generation: str, catalog: Catalog, environment: Environment
) -> PolicySet:
    """Put a set together from documents without errors."""
    tenants = {item.name: item.value for item in sorted(documents.tenants, key=lambda t: t.name)}
    profiles = documents.known_profiles()
    return PolicySet(
        generation=generation,
        settings=documents.settings[0].value if documents.settings else Settings(),
        catalog=catalog,
        environment=environment,
        tenants=tenants,
        tenant_by_namespace={name: t for t in tenants.values() for name in sorted(t.namespaces)},
        selecting_tenants=tuple(t for t in tenants.values() if t.selector is not None),
        profiles={name: p for name, p in sorted(profiles.items()) if p is not None},
        policies=tuple(
            sorted((item.value for item in documents.policies), key=lambda p: (p.order, p.name))
        ),
        exemptions=tuple(sorted((e.value for e in documents.exemptions), key=lambda e: e.name)),
        pools={item.name: item.value for item in sorted(documents.pools, key=lambda p: p.name)},
        reclaim_policies=tuple(
            sorted((item.value for item in documents.reclaim_policies), key=lambda p: p.name)
        ),
    )
