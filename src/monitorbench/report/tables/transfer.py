"""Rows of a transfer study: every cell in a word, several seeds, other objectives, the paper's figures."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monitorbench.metrics import reading
from monitorbench.metrics.results import Results
from monitorbench.metrics.trainings import SeedSpread
from monitorbench.metrics.transfer import MEASURES, change
from monitorbench.metrics.words import CellVerdict, Word, corrected_p
from monitorbench.metrics.written import (
    DASH,
    p_value,
    rate,
    signed,
    signed_interval,
    signed_with_interval,
    value_of,
)
from monitorbench.report.tables.published import PUBLISHED_SFT


class BaseDifference(NamedTuple):
    """A difference from the base, its interval, and Holm's p where it is part of the family."""

    value: str
    interval: str
    p: str


class WordRow(NamedTuple):
    """One training in one test cell."""

    training: str
    prompt: str
    cell: str
    is_trained: bool
    word: str
    detectable: str
    """The smallest AUROC difference that it would have shown."""
    changes: Sequence[BaseDifference]
    """Differences from the base in `MEASURES`."""


class SeedRow(NamedTuple):
    """One training over its seeds, in one cell."""

    name: str
    prompt: str
    cell: str
    n: int
    numbers: Sequence[str]
    """Values of `MEASURES`: mean ± SD (smallest to largest)."""


class PaperRow(NamedTuple):
    """A printed cell of the paper's, and ours of the same name."""

    trained_on: str
    tested_on: str
    theirs: str
    monitor: str
    ours: str
    word: str


def subject(results: Results, training: str, shorts: Mapping[str, str] | None = None) -> str:
    """Name the subject of a sentence on a training: the training over its seeds, or this adapter alone."""
    name, n = (shorts or {}).get(training, training), reading.n_seeds(results, training)
    return f"{name} over {n} seeds" if n > 1 else f"{name} (this adapter)"


def word_rows(results: Results, shorts: Mapping[str, str]) -> list[WordRow]:
    """Every word of the matrix with the numbers it rests on."""
    rows = []
    for training, by_prompt in results["matrix"]["words"].items():
        for prompt, by_cell in by_prompt.items():
            for cell in reading.ordered_cells(set(by_cell)):
                verdict, d = by_cell[cell], results["effects"][training][prompt][cell]
                changes = []
                for measure in MEASURES:
                    moved, p = change(d, measure), corrected_p(verdict, measure)
                    texts = signed(moved.value), signed_interval(moved.interval)
                    changes.append(BaseDifference(*texts, "" if p is None else p_value(p)))
                rows.append(
                    WordRow(
                        training=subject(results, training, shorts),
                        prompt=prompt,
                        cell=reading.title(results, cell),
                        is_trained=reading.is_trained(results, training, cell),
                        word=verdict["word"] or DASH,
                        detectable=_detectable(verdict),
                        changes=changes,
                    )
                )
    return rows


def _detectable(verdict: CellVerdict) -> str:
    if verdict["auroc_p_holm"] is None:
        return DASH
    least = verdict["detectable_auroc_difference"]
    return "none" if least is None else rate(least)


def counted_words(results: Results) -> list[str]:
    """Count how often each word was given, in a sentence each for trained and held-out test cells.

    Trainings of several seeds apart from those of one, of which it is said that it is about these adapters.
    """
    sentences = []
    for several in (True, False):
        for trained in (True, False):
            verdicts = [
                verdict
                for training, by_prompt in results["matrix"]["words"].items()
                if (reading.n_seeds(results, training) > 1) == several
                for by_cell in by_prompt.values()
                for cell, verdict in by_cell.items()
                if "/" in cell and reading.is_trained(results, training, cell) == trained
            ]
            if verdicts:
                sentences.append(_counted(verdicts, several=several, trained=trained))
    return sentences


def _counted(verdicts: Sequence[CellVerdict], *, several: bool, trained: bool) -> str:
    words = [verdict["word"] for verdict in verdicts]
    counts = [f"{word.value} in {n}" for word in Word if (n := words.count(word)) and word is not _NONE]
    if unknown := words.count(None):
        counts.append(f"not to be told in {unknown}")
    if n := words.count(_NONE):
        counts.append(f"{_NONE.value} in {n}{_seen(verdicts)}")
    where = "trained on" if trained else "not trained on"
    cells = f"{len(verdicts)} test cell{'s' if len(verdicts) > 1 else ''}"
    adapters = "a training over its seeds was" if several else "a single seed's adapter was"
    return f"Of {cells} that {adapters} {where}: {', '.join(counts)}."


_NONE = Word.NO_DIFFERENCE_FOUND


def _seen(verdicts: Sequence[CellVerdict]) -> str:
    """The smallest AUROC differences that cells without one would have shown."""
    of_none = [verdict for verdict in verdicts if verdict["word"] == _NONE]
    least = sorted(
        value for verdict in of_none if (value := verdict["detectable_auroc_difference"]) is not None
    )
    if not least:
        return " (where none in AUROC, however large, would have been found with 80 % power)"
    blind = len(of_none) - len(least)
    reach = rate(least[0]) if len(least) == 1 else f"{rate(least[0])} to {rate(least[-1])}"
    blind_text = f"; in {blind} of them none would" if blind else ""
    return f" (the smallest in AUROC that would have been found with 80 % power: {reach}{blind_text})"


def seed_rows(results: Results) -> list[SeedRow]:
    """Each training of several seeds, in each cell."""
    return [
        SeedRow(
            name=name,
            prompt=prompt,
            cell=reading.title(results, cell),
            n=max(spread["n"] for spread in by_measure.values()),
            numbers=[_spread(by_measure.get(measure)) for measure in MEASURES],
        )
        for name, seeds in results["seeds"].items()
        for prompt, by_cell in seeds["spread"].items()
        for cell in reading.ordered_cells(set(by_cell))
        if (by_measure := by_cell[cell])
    ]


def _spread(found: SeedSpread | None) -> str:
    if found is None:
        return DASH
    sd = f" ± {rate(found['sd'])}" if found["sd"] is not None else ""
    return f"{rate(found['mean'])}{sd} ({rate(found['low'])} to {rate(found['high'])})"


def objectives_in_words(results: Results) -> list[str]:
    """A sentence for each objective that was set beside `sft`; the better ones by name where Holm allows."""
    tests = results["objectives"]
    corrected = sum(test["p"] is not None for test in tests)
    sentences = []
    for test in tests:
        difference, p = test["miss_rate_at_far_5_difference"], test["p_holm"]
        is_clear = p is not None and p < results["matrix"]["level"]
        outcome = (
            "no difference found"
            if not is_clear
            else "misses less"
            if (difference or 0) < 0
            else "misses more"
        )
        seed = "" if test["seed"] is None else f", seed {test['seed']}"
        numbers = signed_with_interval(difference, test["miss_rate_at_far_5_difference_ci"])
        sentences.append(
            f"{test['objective']} against sft, trained on {test['subset']}{seed}, {test['prompt']} prompt, "
            f"at a false alarm rate of 5 % on the held-out cells: {outcome}; miss rate "
            f"{rate(test['miss_rate_at_far_5_other'])} against {rate(test['miss_rate_at_far_5_sft'])}, "
            f"{numbers}; AUROC "
            f"{signed_with_interval(test['auroc_difference'], test['auroc_difference_ci'])} "
            f"(n = {test['n']}; after Holm's correction over {corrected} {p_value(p)})."
        )
    return sentences


def paper_rows(results: Results, shorts: Mapping[str, str]) -> list[PaperRow]:
    """The paper's printed cells, each with every adapter of ours that was trained on the same."""
    rows = []
    for printed in PUBLISHED_SFT:
        theirs = f"{printed.monitor}: MR {rate(printed.base_miss_rate)} → {rate(printed.miss_rate)}"
        if printed.false_alarm_rate is not None:
            theirs += f", FAR {rate(printed.false_alarm_rate)}"
        for adapter, trained_on in results["trained_on"].items():
            same = _trained_on_all(results, adapter) if printed.trained_on == "all" else False
            if not same and trained_on != [printed.trained_on]:
                continue
            for prompt in results["transfer"].get(adapter, {}):
                base = reading.lookup(results, reading.base_of(adapter), prompt, printed.tested_on)
                tuned = reading.lookup(results, adapter, prompt, printed.tested_on)
                if base is None or tuned is None:
                    continue
                training = reading.training_of(results, adapter)
                verdict = reading.cell_verdict(results, training, prompt, printed.tested_on)
                ours = (
                    f"MR {value_of(base['miss_rate'])} → {value_of(tuned['miss_rate'])}, "
                    f"FAR {value_of(base['false_alarm_rate'])} → {value_of(tuned['false_alarm_rate'])}, "
                    f"AUROC {value_of(base['auroc'])} → {value_of(tuned['auroc'])}"
                )
                word = verdict["word"] if verdict and verdict["word"] else DASH
                if (n := reading.n_seeds(results, training)) > 1:
                    word += f" (over {n} seeds)"
                name = f"{shorts.get(adapter, adapter)}, {prompt}"
                where = reading.title(results, printed.tested_on)
                rows.append(PaperRow(printed.trained_on, where, theirs, name, ours, word))
    return rows


def _trained_on_all(results: Results, adapter: str) -> bool:
    return reading.is_trained(results, adapter, "overall")


def words_of(results: Results, training: str, prompt: str) -> list[tuple[str, Sequence[str]]]:
    """Each word that was given to a training, and the test cells of it; in the order of `Word`."""
    by_cell = results["matrix"]["words"].get(training, {}).get(prompt, {})
    return [
        (word.value, [reading.title(results, cell) for cell in cells])
        for word in Word
        if (cells := [c for c in reading.ordered_cells(set(by_cell)) if by_cell[c]["word"] == word.value])
    ]
