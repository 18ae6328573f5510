# SPDX-License-Identifier: Apache-2.0
"""Whether a preview is what a `PolicyTest` case expects."""

from collections.abc import Iterator

from policies.documents.policytest import Expectation
from policies.model.decision import Decision


def differences(expect: Expectation, decision: Decision) -> Iterator[str]:
    """Yield a line for each expectation that does not hold; nothing where all do."""
    if decision.verdict is not expect.verdict:
        because = f": {decision.message}" if decision.message else ""
        yield f"verdict is {decision.verdict}, expected {expect.verdict}{because}"
    if expect.reason is not None and expect.reason not in decision.reasons:
        found = ", ".join(decision.reasons) or "none"
        yield f"reasons are {found}, expected {expect.reason}"
    if expect.policy is not None and decision.policy != expect.policy:
        yield f"policy is {decision.policy or 'none'}, expected {expect.policy}"
    if expect.profile is not None and decision.profile != expect.profile:
        yield f"profile is {decision.profile or 'none'}, expected {expect.profile}"
    if expect.requests is not None and dict(decision.given) != dict(expect.requests):
        yield f"requests are {dict(decision.given)}, expected {dict(expect.requests)}"
    if expect.strength is not None and decision.strength != expect.strength:
        yield f"strength is {decision.strength or 'none'}, expected {expect.strength}"
    if expect.message_contains is not None and expect.message_contains not in decision.message:
        yield f"message is {decision.message!r}, expected to contain {expect.message_contains!r}"
    text = expect.warnings_contain
    if text is not None and not any(text in warning for warning in decision.warnings):
        yield f"warnings are {list(decision.warnings)}, expected one to contain {text!r}"
