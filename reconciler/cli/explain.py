# SPDX-License-Identifier: Apache-2.0
"""`sluice explain pod`: a report in words, or as JSON."""

import json
from collections.abc import Iterator, Mapping
from typing import Final, TextIO

from rich.console import Console

from policies.admission.charging import amount as gpus_text
from policies.model.tenant import DEFAULT_POOL
from policies.placement.verdicts import Verdicts
from policies.quota.charge import ChargeRecord
from policies.quota.notice import rfc3339
from policies.quota.planning.explaining import Explanation
from policies.quota.planning.values import Why
from policies.quota.planning.verdict import in_pool
from reconciler.cli.explaining import Report
from reconciler.cli.terminal import age

_WIDTH: Final = 15
_MOST_NODES: Final = 5
_DIGITS: Final = 12
"""Of a generation, as everywhere."""


def print_report(found: Report, console: Console) -> None:
    """Print what there is to say, the decision first."""
    for line in _lines(found):
        console.print(line, markup=False, highlight=False)


def print_report_json(found: Report, stream: TextIO) -> None:
    """Print one JSON object."""
    json.dump(_plain(found), stream, indent=2)
    stream.write("\n")


def _lines(found: Report) -> Iterator[str]:
    yield _decision(found)
    explanation = found.explanation
    if explanation is not None:
        yield _place(found, explanation)
        for title, text in (*_of_waiting(found, explanation), *_of_nodes(found)):
            yield f"  {title + ':':<{_WIDTH}}{text}"
        return
    yield _otherwise(found)
    if found.charge is not None:
        yield f"  {'charge:':<{_WIDTH}}{_charge(found.charge)}"
    if (notice := found.notice) is not None:
        when = rfc3339(notice.evict_at)
        yield f"  {'notice:':<{_WIDTH}}goes at {when} for {notice.beneficiary} ({notice.rule})"
    for title, text in _of_nodes(found):
        yield f"  {title + ':':<{_WIDTH}}{text}"


def _decision(found: Report) -> str:
    name = f"{found.namespace}/{found.name}"
    claim = found.claim
    if claim is None:
        if not found.given:
            return f"{name}   asks for no GPU"
        return f"{name}   has {_devices(found.given)} and no decision of Sluice"
    profiles = ", ".join(sorted(set(claim.profiles.values()))) or "as asked"
    form = f"{profiles}, exclusive" if claim.exclusive else profiles
    given = f" -> {_devices(found.given)}" if found.given != found.asked else ""
    by = f"by {claim.policy}" if claim.policy else "by no policy"
    generation = claim.generation[:_DIGITS]
    return (
        f"{name}   asked {_devices(found.asked)}{given}   {form}   {by} (generation {generation})"
    )


def _place(found: Report, explanation: Explanation) -> str:
    where = f"in cohort {explanation.cohort}" if explanation.cohort else "of its tenant"
    wait = age(found.now - found.created_at)
    if explanation.hold.why is Why.NO_TENANT:
        return f"waiting {wait}, in no queue"
    return f"waiting {wait}, place {explanation.place} of {explanation.waiting} {where}"


def _of_waiting(found: Report, explanation: Explanation) -> Iterator[tuple[str, str]]:
    yield "holds it back", explanation.hold.text
    for text in found.standing:
        yield "quota", text
    if found.holders:
        yield "held by", ", ".join(found.holders)
    for pool, report in explanation.pools.items():
        yield "nodes", f"{report}{in_pool(pool)}"
    if not explanation.amount.is_nothing:
        yield "charge", f"{gpus_text(explanation.amount.milli)}, once it is released"
    yield "ends it", explanation.ends
    if found.takes_back:
        yield "takes back", ", ".join(found.takes_back)
    else:
        yield "takes back", f"nothing: {found.no_reclaim}"


def _of_nodes(found: Report) -> Iterator[tuple[str, str]]:
    """Say what becomes of each node: the best with their scores, and the others by reason."""
    verdicts = found.verdicts
    if verdicts is None:
        return
    if found.explanation is None:
        yield "node", found.node or "none yet"
    standing = verdicts.standing
    many = f"{len(standing)} of {_nodes(verdicts.nodes)}"
    if standing:
        best = ", ".join(f"{each.name} ({each.score})" for each in standing[:_MOST_NODES])
        more = ", ..." if len(standing) > _MOST_NODES else ""
        yield "could go to", f"{many}, best first: {best}{more}"
    else:
        yield "could go to", f"none of {_nodes(verdicts.nodes)}"
    for reason, count in verdicts.lost.items():
        yield "lost", f"{_nodes(count)}: {reason}"
    for out in verdicts.out:
        # What keeps a waiting pod off nodes is said by pool above, but for the extender's part.
        if out.by_extender or found.explanation is None:
            yield "out", f"{_nodes(len(out.nodes))}: {out.reason}"


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def _otherwise(found: Report) -> str:
    match found.phase:
        case "Ended":
            return "ended, or takes nothing on any node: it counts nothing"
        case "TakesNoGPU":
            return "takes no GPU, so no quota holds it and none is charged"
        case "Held":
            gates = ", ".join(found.other_gates)
            return f"waits for gates of others ({gates}); its quota is decided after them"
        case "Leaving":
            return f"is being deleted; it counts for {found.tenant or 'no tenant'} until it is gone"
    if found.charge is None:
        return f"was never charged; it counts for {found.tenant or 'no tenant'} all the same"
    return f"released {age(found.now - found.charge.at)} ago"


def _charge(charge: ChargeRecord) -> str:
    how = "borrowed" if charge.borrowed else "within its guarantee"
    back = "" if charge.reclaimable and not charge.exclusive else ", never taken back"
    pool = in_pool(charge.pool) if charge.pool != DEFAULT_POOL else ""
    return f"{gpus_text(charge.amount.milli)} of {charge.tenant}{pool}, {how}{back}"


def _devices(counts: Mapping[str, int]) -> str:
    if len(counts) == 1:
        (name, count), *_ = counts.items()
        if name.endswith("/gpu"):
            return f"{count} GPU{'' if count == 1 else 's'}"
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"


def _plain(found: Report) -> dict[str, object]:
    claim, charge, notice = found.claim, found.charge, found.notice
    return {
        "namespace": found.namespace,
        "name": found.name,
        "phase": found.phase,
        "tenant": found.tenant or None,
        "policy": claim.policy if claim is not None else None,
        "profiles": dict(claim.profiles) if claim is not None else {},
        "exclusive": claim is not None and claim.exclusive,
        "generation": claim.generation if claim is not None else None,
        "asked": dict(found.asked),
        "given": dict(found.given),
        "charge": None if charge is None else json.loads(charge.to_annotation()),
        "notice": None
        if notice is None
        else {
            "beneficiary": notice.beneficiary,
            "rule": notice.rule,
            "evictAt": rfc3339(notice.evict_at),
        },
        "otherGates": list(found.other_gates),
        "node": found.node or None,
        "nodes": None if found.verdicts is None else _verdicts(found.verdicts),
        "waiting": None if found.explanation is None else _waiting(found, found.explanation),
    }


def _verdicts(verdicts: Verdicts) -> dict[str, object]:
    return {
        "standing": [
            {
                "name": each.name,
                "score": each.score,
                "lostBy": each.lost_by or None,
                "strategy": str(each.strategy),
            }
            for each in verdicts.standing
        ],
        "out": [
            {"reason": each.reason, "byExtender": each.by_extender, "nodes": list(each.nodes)}
            for each in verdicts.out
        ],
    }


def _waiting(found: Report, explanation: Explanation) -> dict[str, object]:
    return {
        "since": rfc3339(found.created_at),
        "cohort": explanation.cohort or None,
        "place": explanation.place,
        "of": explanation.waiting,
        "reason": str(explanation.hold.why),
        "message": explanation.hold.text,
        "ends": explanation.ends,
        "chargeMilli": explanation.amount.milli,
        "nodes": {pool: str(report) for pool, report in explanation.pools.items()},
        "quota": list(found.standing),
        "heldBy": list(found.holders),
        "takesBack": list(found.takes_back),
        "takesBackNothingBecause": None if found.takes_back else found.no_reclaim,
    }
