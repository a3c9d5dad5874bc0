"""Samples without an answer: why they have no label, if too many were lost, if asking again may help."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from monitorbench.config.base import Incomplete
from monitorbench.records import TRANSPORT_FAILURES, UnscoredReason, Verdict, reasons_in_words

_WOULD_COME_AGAIN = re.compile(r"\bHTTP (400|413|422)\b|\bnot sent:")
"""Words of `engines.endpoint.wire` for a request that is at fault itself, for example too long."""
Outcome = Verdict | None
"""A sample's verdict, or what its last failed request would be as one; None where it was not asked."""


def unscored_reasons(found: Sequence[Outcome]) -> Counter[str]:
    """How many of these samples have no label for which reason."""
    return Counter(_reason(outcome) for outcome in found if outcome is None or outcome.label is None)


def refuse_incomplete(directory: Path, unanswered: Sequence[Outcome], n: int, max_failed: float) -> None:
    """Raise `Incomplete` where one sample was not asked, or too many were and got no answer.

    Args:
        directory: the run.
        unanswered: the samples without a verdict.
        n: how many samples are judged in all.
        max_failed: the share of them that may stay without an answer, in [0, 1].

    """
    if None not in unanswered and len(unanswered) / n <= max_failed:
        return
    details = [outcome.detail for outcome in unanswered if outcome is not None and outcome.detail]
    last = f"; the last one: {details[-1]}" if details else ""
    words = reasons_in_words(Counter(map(_reason, unanswered)))
    raise Incomplete(
        f"{directory}: incomplete, {len(unanswered)} of {n} samples got no answer ({words}{last}); the same "
        f"command asks only these again (engine.max_failed={max_failed:g})"
    )


def is_outage(reason: str | None, detail: str) -> bool:
    """Whether a request failed on its way, so that nothing may be made of it before it is asked again.

    Not where asking again would get the same: an empty answer, or a request that the endpoint refuses for
    what it is. `reason` is a value of `UnscoredReason`, `detail` is the reply's.
    """
    on_the_way = reason in TRANSPORT_FAILURES and reason != UnscoredReason.EMPTY
    return on_the_way and not _WOULD_COME_AGAIN.search(detail)


def _reason(one: Outcome) -> str:
    return "not_asked" if one is None else str(one.unscored)
