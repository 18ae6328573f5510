# SPDX-License-Identifier: Apache-2.0
"""The term of a leader, as the releases that it sends name it, and which of two is the older.

A guard against a leader that was frozen and wakes up: who has taken the Lease since decides by
other pods. How a Lease is taken and watched must not be here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeaseTerm:
    """One stay in office: the Lease (`namespace/name`), and how often it had changed hands.

    `uid` and `created` (RFC 3339, as the API writes it) tell a Lease that was made again from the
    one that was deleted, for that one counts from the start.
    """

    lease: str
    uid: str
    created: str
    transitions: int

    def is_older_than(self, other: "LeaseTerm") -> bool:
        """Tell whether it was certainly over before the other began.

        Of two Leases of one name that were made in the same second it is not known, and terms of
        Leases of different names have no order.
        """
        if self.lease != other.lease:
            return False
        if self.uid == other.uid:
            return self.transitions < other.transitions
        # Both in UTC and with whole seconds, so that texts compare as times do.
        return bool(self.created) and self.created < other.created

    def to_annotation(self) -> str:
        """Return its four fields with spaces between them; none of them can hold one."""
        return f"{self.transitions} {self.lease} {self.created} {self.uid}"


def read_term(text: str | None) -> LeaseTerm | None:
    """Return the term of an annotation, None where there is none or it is not of our making."""
    parts = (text or "").split(" ")
    try:
        transitions, lease, created, uid = parts
        return LeaseTerm(lease, uid, created, int(transitions))
    except ValueError:
        return None
