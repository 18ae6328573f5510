# SPDX-License-Identifier: Apache-2.0
"""The annotation that tells a pod that it will be taken back. Pure.

It is the only memory of a notice, so a new leader goes on where the last one stopped. Only Sluice's
account may write it; what is not of our making reads as none. Times are RFC 3339 in UTC.
"""

from datetime import UTC, datetime

import orjson

from policies.quota.pods import Notice


def write_notice(notice: Notice) -> str:
    """Return it as compact JSON: the same notice is the same bytes."""
    plain = {
        "beneficiary": notice.beneficiary,
        "rule": notice.rule,
        "at": rfc3339(notice.at),
        "evictAt": rfc3339(notice.evict_at),
    }
    if notice.refused_at is not None:
        plain["refusedAt"] = rfc3339(notice.refused_at)
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()


def read_notice(text: str | None) -> Notice | None:
    """Return the notice of an annotation, None where there is none or it cannot be read."""
    if not text:
        return None
    try:
        plain = orjson.loads(text)
        refused = plain.get("refusedAt")
        return Notice(
            beneficiary=_text(plain["beneficiary"]),
            rule=_text(plain["rule"]),
            at=_seconds(plain["at"]),
            evict_at=_seconds(plain["evictAt"]),
            refused_at=None if refused is None else _seconds(refused),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def rfc3339(seconds: int) -> str:
    """Return Unix seconds as the Kubernetes API writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(value: object) -> int:
    at = datetime.fromisoformat(_text(value))
    if at.tzinfo is None:
        raise ValueError(value)
    return int(at.timestamp())


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
