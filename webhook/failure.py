# SPDX-License-Identifier: Apache-2.0
"""What is answered when Sluice itself fails: the configured failure mode, as a decision.

A denial for this cause has the reason InternalError and names the review, which stands in the
log beside the traceback. Logging and counting must not be here.
"""

from enum import StrEnum

from policies.model.decision import Decision, Verdict, Violation
from policies.model.reasons import Reason
from policies.model.request import Request
from policies.model.settings import FailureMode


class Cause(StrEnum):
    """Why there is no decision."""

    EXCEPTION = "Exception"
    NO_POLICIES = "NoPolicies"
    DEADLINE = "Deadline"


_WORDS = {
    Cause.EXCEPTION: "Sluice failed to decide; its log has the cause under review {uid}",
    Cause.NO_POLICIES: "Sluice has no policies loaded yet: try again (review {uid})",
    Cause.DEADLINE: "the review came too late to be decided: try again (review {uid})",
}


class UndecidedError(Exception):
    """A review that cannot be decided, for a cause that is no bug."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(str(cause))
        self.cause = cause


def fail(
    request: Request, cause: Cause, mode: FailureMode, generation: str, *, touches_gpus: bool
) -> Decision:
    """Return the decision that stands in for the one that could not be made.

    What does not touch GPUs is allowed whatever the mode: Sluice must never stop it.
    """
    words = _WORDS[cause].format(uid=request.uid)
    denied = touches_gpus and mode is FailureMode.DENY
    return Decision(
        verdict=Verdict.DENIED if denied else Verdict.ALLOWED,
        generation=generation,
        violations=(Violation(Reason.INTERNAL_ERROR, words),),
        warnings=() if denied else (f"sluice: [{Reason.INTERNAL_ERROR}] not checked: {words}",),
        touches_gpus=touches_gpus,
    )
