"""A verdict as no judge gave it, for tests that look at a field or two."""

from typing import Any

from monitorbench.records import Label, UnscoredReason, Verdict


def made_verdict(label: Label | None = None, score: float | None = None, **fields: Any) -> Verdict:
    """A verdict with this label and score; without a label it is unscored, for `no_label` unless said."""
    usual: dict[str, Any] = {
        "key": "k",
        "sample_id": "s",
        "prompt": "p",
        "answer": "",
        "unscored": None if label else UnscoredReason.NO_LABEL,
        "label_mass": None,
        "finish_reason": "stop",
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "seconds": 0.0,
    }
    return Verdict(label=label, score=score, **usual | fields)
