# SPDX-License-Identifier: Apache-2.0
"""What may be done to documents in the API, and what is said of it. Pure: no I/O and no loading.

Who may write what is decided from the request alone; whether a document is good is told by the
problems that a load of the whole set with it has found.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from policies.documents.kinds import Kind
from policies.documents.problems import Problem, Severity
from policies.documents.source import SourceText
from policies.model.decision import Violation
from policies.model.keys import FILE, STATE_PREFIX
from policies.model.reasons import Reason
from policies.model.request import JsonObject, Operation, Request
from reconciler.kube import raw
from reconciler.kube.document_resources import GROUP, KIND_OF_PLURAL
from reconciler.runtime.api_documents import is_mirror, source_name, to_source

_NOTHING: JsonObject = {}


@dataclass(frozen=True, slots=True)
class Change:
    """What a request does to the set: `name` is replaced by `new`, or taken out without it."""

    name: str
    new: SourceText | None

    def applied_to(self, sources: Iterable[SourceText]) -> tuple[SourceText, ...]:
        """Return the sources after the change; the new one comes last, as the later comer."""
        others = tuple(source for source in sources if source.name != self.name)
        return others if self.new is None else (*others, self.new)


def kind_of(request: Request) -> Kind | None:
    """Return the kind of document that a request is about; None if it is about none."""
    return KIND_OF_PLURAL.get(request.resource) if request.group == GROUP else None


def trespass(request: Request, kind: Kind) -> Violation | None:
    """Return why somebody who is not Sluice may not do this, whatever the content."""
    if request.subresource:
        message = f"only Sluice writes the {request.subresource} of a {kind}"
        return Violation(Reason.OWNED_KEY, message)
    old, new = request.old_object or _NOTHING, request.object or _NOTHING
    if is_mirror(old):
        file = raw.strings(old, "metadata", "annotations").get(FILE, "a file")
        message = f"{_label(kind, request)} mirrors what {file} says: change it there"
        return Violation(Reason.MIRRORED_DOCUMENT, message)
    if request.operation is not Operation.DELETE and _state(new) != _state(old):
        message = f"only Sluice writes labels and annotations {STATE_PREFIX}*"
        return Violation(Reason.OWNED_KEY, message)
    return None


def change_of(request: Request, kind: Kind) -> Change | None:
    """Return what the request does to the set of documents; None if nothing."""
    name = request.name or raw.text(raw.mapping(request.object or _NOTHING, "metadata"), "name")
    if not name:
        return None  # a generated name, which the second pass will see
    if request.operation is Operation.DELETE:
        return Change(source_name(kind, name), None)
    old = to_source(kind, request.old_object) if request.old_object is not None else None
    new = to_source(kind, request.object) if request.object is not None else None
    if new is None or new == old:
        return None
    return Change(source_name(kind, name), new)


def violations(
    change: Change, after: Iterable[Problem], before: Iterable[Problem]
) -> tuple[Violation, ...]:
    """Return the errors of the document itself; else those that others would have through it.

    `before` are the problems of the set as it is: nobody is held to what was wrong already.
    """
    found = _concerning(change, after, before, Severity.ERROR)
    own = [problem for problem in found if problem.file == change.name]
    return tuple(
        Violation(Reason.INVALID_DOCUMENT, _words(problem, change.name)) for problem in own or found
    )


def warnings(
    change: Change, after: Iterable[Problem], before: Iterable[Problem]
) -> tuple[str, ...]:
    """Return the warnings on the document itself, and those that are new elsewhere."""
    found = _concerning(change, after, before, Severity.WARNING)
    return tuple(f"sluice: {_words(problem, change.name)}" for problem in found)


def _concerning(
    change: Change, after: Iterable[Problem], before: Iterable[Problem], severity: Severity
) -> list[Problem]:
    known = frozenset(before)
    return [
        problem
        for problem in after
        if problem.severity is severity and (problem.file == change.name or problem not in known)
    ]


def farewell(request: Request, kind: Kind) -> tuple[str, ...]:
    """Return what is to be said when a tenant goes that still uses GPUs."""
    status = raw.mapping(request.old_object or _NOTHING, "status")
    used = raw.text(status, "used")
    if kind is not Kind.TENANT or request.operation is not Operation.DELETE or not used.strip("0."):
        return ()
    words = "its pods run on and are counted until they end; those that wait stay gated"
    return (f"sluice: tenant {request.name} uses {used} GPUs: {words}",)


def _words(problem: Problem, name: str) -> str:
    """Return what `sluice lint` says of a problem; of the object in hand without its place."""
    if problem.file != name:
        return str(problem)
    return str(problem).removeprefix(f"{name}: {problem.severity.lower()}: ")


def _label(kind: Kind, request: Request) -> str:
    return f"{kind}/{request.name}"


def _state(item: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return labels and annotations that are Sluice's."""
    return {
        field: {
            key: value
            for key, value in raw.strings(item, "metadata", field).items()
            if key.startswith(STATE_PREFIX)
        }
        for field in ("labels", "annotations")
    }
