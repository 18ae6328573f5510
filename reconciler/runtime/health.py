# SPDX-License-Identifier: Apache-2.0
"""Whether a process may be sent work, and why not: values only, no I/O."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that readiness looks at.

    A condition that is not `required` is reported when it fails, but the process stays ready: a
    broken policy file must not take every replica out of service while the last good set serves.
    """

    name: str
    ok: bool
    message: str = ""
    required: bool = True

    def to_json(self) -> dict[str, object]:
        """Return it as /readyz shows it; without a message where there is nothing to say."""
        plain: dict[str, object] = {"name": self.name, "ok": self.ok, "required": self.required}
        return plain | {"message": self.message} if self.message else plain


@dataclass(frozen=True, slots=True)
class Readiness:
    """All conditions of a process at one moment."""

    conditions: tuple[Condition, ...]

    @property
    def ready(self) -> bool:
        """Tell whether every required condition holds."""
        return all(condition.ok for condition in self.conditions if condition.required)

    def with_condition(self, condition: Condition) -> "Readiness":
        """Return this with one more condition."""
        return Readiness((*self.conditions, condition))

    def to_json(self) -> dict[str, object]:
        """Return the body of /readyz."""
        return {
            "ready": self.ready,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


def policies_condition(generation: str | None) -> Condition:
    """Say whether a policy set is being served; None where none has loaded yet."""
    loaded = generation is not None
    message = f"generation {generation}" if loaded else "no policy set has been loaded yet"
    return Condition("policies-loaded", loaded, message)


def documents_condition(problem: str | None) -> Condition:
    """Say whether the documents as they are now are good; the last good set serves meanwhile."""
    message = f"{problem}; the last good set is being served" if problem else ""
    return Condition("documents-valid", problem is None, message, required=False)


def api_documents_condition(*, synced: bool) -> Condition:
    """Say whether the documents in the API are known; without them the set would be half of one."""
    message = "" if synced else "the documents in the API have not been listed yet"
    return Condition("api-documents-synced", synced, message)


def facts_synced_condition(*, synced: bool) -> Condition:
    """Say whether nodes and namespaces have been listed at least once."""
    message = "" if synced else "nodes and namespaces have not been listed yet"
    return Condition("facts-synced", synced, message)


def facts_fresh_condition(stale_seconds: int | None) -> Condition:
    """Say whether the facts are live. Stale ones are still decided on, and the decision says so."""
    fresh = stale_seconds is None
    message = "" if fresh else f"the facts are {stale_seconds} s old"
    return Condition("facts-fresh", fresh, message, required=False)
