"""The choice of a wording as rows of text, and as the sentence that the stage and the page have."""

from monitorbench.metrics.wordings import WordingChoice
from monitorbench.metrics.written import (
    DASH,
    count,
    interval,
    rate,
    rate_with_interval,
    signed_interval,
    signed_with_interval,
)

COLUMNS = (("prompt", 23), ("AUROC", 13), ("chosen minus it", 17), ("MR", 4), ("FAR", 4), ("unsc.", 5))
"""Columns of `choice_rows`, with their widths in a terminal."""


def choice_rows(choice: WordingChoice) -> list[list[str]]:
    """A row a prompt, the highest AUROC first."""
    return [
        [
            name,
            rate_with_interval(of["auroc"], of["auroc_ci"]),
            "chosen"
            if name == choice["chosen"]
            else DASH
            if of["behind"] is None
            else signed_with_interval(of["behind"], of["behind_ci"]),
            rate(of["miss_rate"]),
            rate(of["false_alarm_rate"]),
            count(of["n_unscored"]),
        ]
        for name, of in sorted(choice["prompts"].items(), key=lambda entry: -(entry[1]["auroc"] or 0.0))
    ]


def in_words(choice: WordingChoice) -> str:
    """Say which wording was chosen, its AUROC, what is not shown worse, and how far to trust it."""
    chosen, spread = choice["prompts"][choice["chosen"]], choice["spread"]
    opening = (
        f"{choice['chosen']} was chosen on {choice['n']:,} {choice['split']} samples: AUROC "
        f"{rate(chosen['auroc'])} {interval(chosen['auroc_ci'])}"
    )
    sentences = [opening]
    if spread is not None:
        bounds = signed_interval(choice["spread_ci"])
        sentences.append(f"spread over {len(choice['prompts'])} prompts {rate(spread)} {bounds}".rstrip())
    if choice["not_shown_worse"]:
        sentences.append(f"not shown worse: {', '.join(choice['not_shown_worse'])}")
    if chosen["auroc_ci"] and chosen["auroc_ci"][0] <= 0.5:
        sentences.append("not shown to be better than guessing")
    return f"{'; '.join(sentences)}. It looks better there than it is, since these numbers chose it."
