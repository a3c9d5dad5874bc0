"""What the benchmark's paper printed, on another dataset, and correlations of ours in words."""

from collections.abc import Mapping
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.marks import title
from monitorbench.metrics.results import Results, effects_of, is_trained, n_seeds, training_of
from monitorbench.metrics.table import BASE, base_of
from monitorbench.metrics.words import word
from monitorbench.metrics.written import DASH, rate, signed, signed_interval, value_of

ARXIV = "2601.05752"
_CORRELATION = -0.54
"""Pearson's r of MR and FAR over the paper's monitors, one point each."""


class Published(NamedTuple):
    """One monitor's overall (MR, FAR) under both prompts."""

    monitor: str
    direct: tuple[float, float]
    evidence: tuple[float, float]


PUBLISHED = (
    Published("GPT-4o-mini", (0.36, 0.32), (0.25, 0.50)),
    Published("DeepSeek-V3", (0.17, 0.41), (0.13, 0.53)),
    Published("Gemini-2.5-Flash", (0.15, 0.36), (0.07, 0.58)),
    Published("Qwen3-14B", (0.30, 0.39), (0.20, 0.36)),
)
"""arXiv:2601.05752, the rows over all subsets."""


class PublishedSft(NamedTuple):
    """One cell of the paper's fine-tuning study, as printed."""

    monitor: str
    trained_on: str
    tested_on: str
    base_miss_rate: float
    miss_rate: float
    false_alarm_rate: float | None
    """False alarm rate of the fine-tuned monitor; None where none is printed."""


_PUBLISHED_SFT = (
    PublishedSft("Qwen3-4B", "safety_permission/code", "safety_permission/code", 0.59, 0.00, 0.03),
    PublishedSft("Qwen3-4B", "safety_permission/code", "specification_gaming/code", 0.49, 0.86, None),
    PublishedSft("Qwen3-8B", "safety_permission/code", "specification_gaming/code", 0.433, 0.899, None),
    PublishedSft("Qwen3-4B", "all", "specification_gaming", 0.49, 0.70, None),
)
"""arXiv:2601.05752, the study of supervised fine-tuning. Not in it as cells: trained on Sycophancy & Bias QA,
FAR .64–.93 with a low MR almost everywhere."""


def correlations_in_words(results: Results) -> list[str]:
    """MR against FAR over the monitors, a sentence a prompt, beside the paper's."""
    sentences = []
    for prompt, facts in results["correlation"].items():
        many = f"{facts['n']} base model{'' if facts['n'] == 1 else 's'}"
        if facts["r"] is None:
            text = f"not defined over {many}: too few monitors, or all with one rate"
        elif facts["r_ci"] is None:
            text = f"{signed(facts['r'])} over {many}: too few monitors for an interval, and to conclude from"
        else:
            text = f"{signed(facts['r'])} {signed_interval(facts['r_ci'])} over {many}"
        sentences.append(f"Pearson's r of miss rate and false alarm rate, {prompt} prompt: {text}.")
    if sentences:
        sentences.append(
            f"The benchmark's paper (arXiv:{ARXIV}) found r = {signed(_CORRELATION)} over its own monitors, "
            "on another dataset."
        )
    return sentences


def paper_rows(results: Results, shorts: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The paper's printed cells, each with every adapter of ours that was trained on the same."""
    rows: list[tuple[str, ...]] = []
    for printed in _PUBLISHED_SFT:
        theirs = f"{printed.monitor}: MR {rate(printed.base_miss_rate)} → {rate(printed.miss_rate)}"
        if printed.false_alarm_rate is not None:
            theirs += f", FAR {rate(printed.false_alarm_rate)}"
        for adapter, trained_on in results["trained_on"].items():
            same = printed.trained_on == "all" and is_trained(results, adapter, OVERALL)
            if not same and trained_on != [printed.trained_on]:
                continue
            for prompt in results["table"].compared(BASE).get(adapter, {}):
                base = results["table"].lookup(base_of(adapter), prompt, printed.tested_on)
                tuned = results["table"].lookup(adapter, prompt, printed.tested_on)
                if base is None or tuned is None:
                    continue
                training = training_of(results, adapter)
                numbers = effects_of(results).get(training, {}).get(prompt, {}).get(printed.tested_on)
                ours = (
                    f"MR {value_of(base['miss_rate'])} → {value_of(tuned['miss_rate'])}, "
                    f"FAR {value_of(base['false_alarm_rate'])} → {value_of(tuned['false_alarm_rate'])}, "
                    f"AUROC {value_of(base['auroc'])} → {value_of(tuned['auroc'])}"
                )
                in_a_word = (numbers and word(numbers)) or DASH
                if (n := n_seeds(results, training)) > 1:
                    in_a_word += f" (over {n} seeds)"
                name = f"{shorts.get(adapter, adapter)}, {prompt}"
                where = title(results, printed.tested_on)
                rows.append((printed.trained_on, where, theirs, name, ours, in_a_word))
    return rows
