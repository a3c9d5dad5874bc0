"""Rows of a transfer study: every cell in a word, several seeds, other objectives, the paper's figures."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from monitorbench.config.terminal import Console
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.marks import title
from monitorbench.metrics.results import Results, is_trained, n_seeds, short_names
from monitorbench.metrics.table import BAG_OF_WORDS, NO_PROMPT, ordered_cells
from monitorbench.metrics.trainings import SeedSpread, doses_in_words
from monitorbench.metrics.transfer import MEASURES, TransferDifference, change
from monitorbench.metrics.words import CellVerdict, Word, corrected_p
from monitorbench.metrics.written import (
    DASH,
    counted,
    finding,
    p_value,
    rate,
    shown,
    signed,
    signed_interval,
    signed_with_interval,
)
from monitorbench.report.tables.terminal import print_rows, say, start_table

_WORD_COLUMNS = (("word", 22), ("cells", 54))
_DIFFERENCE_COLUMNS = (
    ("tested on", 18),
    ("n", 4),
    ("difference", 17),
    ("in words", 19),
    ("bag of words", 13),
)
_WHERE = {OVERALL: "all", "trained": "trained", "held_out": "held out"}


class WordRow(NamedTuple):
    """One training in one test cell."""

    training: str
    prompt: str
    cell: str
    is_trained: bool
    word: str
    detectable: str
    """The smallest AUROC difference that it would have shown."""
    changes: Sequence[tuple[str, str, str]]
    """Differences from the base in `MEASURES`: value, interval, and Holm's p where it is in the family."""


def subject(results: Results, training: str, shorts: Mapping[str, str] | None = None) -> str:
    """Name the subject of a sentence on a training: the training over its seeds, or this adapter alone."""
    name, n = (shorts or {}).get(training, training), n_seeds(results, training)
    return f"{name} over {n} seeds" if n > 1 else f"{name} (this adapter)"


def word_rows(results: Results, shorts: Mapping[str, str]) -> list[WordRow]:
    """Every word of the matrix with the numbers it rests on."""
    rows = []
    for training, by_prompt in results["matrix"]["words"].items():
        for prompt, by_cell in by_prompt.items():
            for cell in ordered_cells(set(by_cell)):
                verdict, d = by_cell[cell], results["effects"][training][prompt][cell]
                changes = []
                for measure in MEASURES:
                    moved, p = change(d, measure), corrected_p(verdict, measure)
                    texts = signed(moved.value), signed_interval(moved.interval)
                    changes.append((*texts, "" if p is None else p_value(p)))
                rows.append(
                    WordRow(
                        training=subject(results, training, shorts),
                        prompt=prompt,
                        cell=title(results, cell),
                        is_trained=is_trained(results, training, cell),
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
                if (n_seeds(results, training) > 1) == several
                for by_cell in by_prompt.values()
                for cell, verdict in by_cell.items()
                if "/" in cell and is_trained(results, training, cell) == trained
            ]
            if verdicts:
                sentences.append(_counted(verdicts, several=several, trained=trained))
    return sentences


def _counted(verdicts: Sequence[CellVerdict], *, several: bool, trained: bool) -> str:
    where = "trained on" if trained else "not trained on"
    adapters = "a training over its seeds was" if several else "a single seed's adapter was"
    cells = counted(len(verdicts), "test cell")
    return f"Of {cells} that {adapters} {where}: {words_in_counts(verdicts)}."


def words_in_counts(verdicts: Sequence[CellVerdict]) -> str:
    """How often each word was given, and beside *no difference found* what would have been found."""
    words = [verdict["word"] for verdict in verdicts]
    counts = [f"{word.value} in {n}" for word in Word if (n := words.count(word)) and word is not _NONE]
    if unknown := words.count(None):
        counts.append(f"not to be told in {unknown}")
    if n := words.count(_NONE):
        counts.append(f"{_NONE.value} in {n}{_seen(verdicts)}")
    return ", ".join(counts)


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


def seed_rows(results: Results) -> list[tuple[str, ...]]:
    """Each training of several seeds, in each cell: how many, and mean ± SD (range) of `MEASURES`."""
    return [
        (
            f"{name}, {prompt}",
            title(results, cell),
            str(max(spread["n"] for spread in by_measure.values())),
            *(_spread(by_measure.get(measure)) for measure in MEASURES),
        )
        for name, seeds in results["seeds"].items()
        for prompt, by_cell in seeds["spread"].items()
        for cell in ordered_cells(set(by_cell))
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


def words_of(results: Results, training: str, prompt: str) -> list[tuple[str, Sequence[str]]]:
    """Each word that was given to a training, and the test cells of it; in the order of `Word`."""
    by_cell = results["matrix"]["words"].get(training, {}).get(prompt, {})
    return [
        (word.value, [title(results, cell) for cell in cells])
        for word in Word
        if (cells := [c for c in ordered_cells(set(by_cell)) if by_cell[c]["word"] == word.value])
    ]


class ComparedTraining(NamedTuple):
    """A training, of one seed or of several, against its base on a set of cells."""

    training: str
    prompt: str
    where: str
    n_cells: int
    difference: TransferDifference
    bag_of_words: str
    """Bag of words' AUROC beside the difference, with its interval or as the mean it is."""


def comparisons(results: Results) -> list[ComparedTraining]:
    """Each training and prompt: overall, on the cells it was trained on, on the others; none empty.

    Where it was trained on all of them, overall is the same and left out.
    """
    compared: list[ComparedTraining] = []
    everything = results["table"].inner_cells(OVERALL)
    for training, by_prompt in results["effects"].items():
        trained = [cell for cell in everything if is_trained(results, training, cell)]
        held_out = [cell for cell in everything if cell not in trained]
        for prompt, by_cell in by_prompt.items():
            for where, inside in ((OVERALL, everything), ("trained", trained), ("held_out", held_out)):
                same = where == OVERALL and not held_out and "trained" in by_cell
                if where in by_cell and by_cell[where]["n"] and not same:
                    beside = _bag_of_words_on(results, inside)
                    compared.append(
                        ComparedTraining(training, prompt, where, len(inside), by_cell[where], beside)
                    )
    return compared


def _bag_of_words_on(results: Results, inside: list[str]) -> str:
    """Bag of words' AUROC with its interval on exactly these cells, or else the mean over them."""
    parts = results["table"].parts(BAG_OF_WORDS, NO_PROMPT)
    for name, numbers in parts.items():
        if inside and results["table"].inner_cells(name) == inside and name not in results["headline"]:
            return shown(numbers["auroc"])
    aurocs = [value for cell in inside if cell in parts and (value := parts[cell]["auroc"].value) is not None]
    return f"{rate(fmean(aurocs))} (mean)" if aurocs and len(aurocs) == len(inside) else DASH


def print_words(console: Console, results: Results) -> None:
    """Print what happened in which cells, by training and prompt, in the matrix's words."""
    matrix = results["matrix"]
    if not matrix["words"]:
        return
    names = short_names(results)
    say(console, "")
    say(console, f"What training did, against the base (Holm over {matrix['n_tests']} tests)", "bold")
    for training, by_prompt in matrix["words"].items():
        for prompt in by_prompt:
            named = subject(results, training, names)
            say(console, f"{named} · {prompt} prompt", "bold")
            by_word = words_of(results, training, prompt)
            rows = [[f"  {word}", ", ".join(cells)] for word, cells in by_word]
            print_rows(console, _WORD_COLUMNS, rows)
    sentences = (
        *counted_words(results),
        *doses_in_words(results["exposures"]),
        *objectives_in_words(results),
    )
    for sentence in sentences:
        say(console, sentence)


def print_differences(console: Console, results: Results) -> None:
    """Print AUROC minus the base's by training and prompt, on trained and on held-out cells."""
    compared = comparisons(results)
    if not compared:
        return
    names = short_names(results)
    start_table(
        console, "AUROC of each training minus its base's (same samples, 95 % intervals)", _DIFFERENCE_COLUMNS
    )
    for training, prompt in dict.fromkeys(
        (comparison.training, comparison.prompt) for comparison in compared
    ):
        say(console, f"{subject(results, training, names)} · {prompt} prompt", "bold")
        here = [
            comparison
            for comparison in compared
            if (comparison.training, comparison.prompt) == (training, prompt)
        ]
        print_rows(console, _DIFFERENCE_COLUMNS, [_difference_row(comparison) for comparison in here])
    say(console, "Bag of words: AUROC over all its samples there; (mean): of its AUROCs by cell.", "dim")


def _difference_row(one: ComparedTraining) -> list[str]:
    bounds = one.difference["auroc_difference_ci"]
    return [
        f" {where(one)}",
        str(one.difference["n_both_with_score"]),
        signed_with_interval(one.difference["auroc_difference"], bounds),
        str(finding(bounds)),
        one.bag_of_words,
    ]


def where(one: ComparedTraining) -> str:
    """The cells of a comparison, in words of at most 17 characters."""
    return f"{_WHERE[one.where]}, {one.n_cells} cell{'s' if one.n_cells != 1 else ''}"
