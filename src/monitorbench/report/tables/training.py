"""What a transfer study found, in sentences, and its tables in a terminal: learnt, followed, gone wrong."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean

from monitorbench.config.terminal import Console
from monitorbench.metrics.results import Results, n_seeds, short_names
from monitorbench.metrics.table import BAG_OF_WORDS, CHANCE
from monitorbench.metrics.trainings import doses_in_words
from monitorbench.metrics.words import LEVEL, Word
from monitorbench.metrics.written import (
    DASH,
    counted,
    finding,
    p_value,
    rate,
    shown,
    signed_with_interval,
    value_of,
)
from monitorbench.report.tables.effects import (
    ComparedTraining,
    Effect,
    comparisons,
    cosine,
    effects,
    negative_rows,
    share_cells,
    short_training,
)
from monitorbench.report.tables.terminal import print_rows, say, say_lines, start_table

_NONE_FOUND = Word.NO_DIFFERENCE_FOUND


def counted_words(results: Results) -> list[str]:
    """Count how often each word was given, in a sentence each for trained and held-out test cells.

    Trainings of several seeds apart from those of one, of which it is said that it is about these adapters.
    """
    single = [row for row in effects(results) if row.is_in_matrix and "/" in row.cell]
    sentences = []
    for several, who in ((True, "a training over its seeds was"), (False, "a single seed's adapter was")):
        for trained, on in ((True, "trained on"), (False, "not trained on")):
            rows = [
                row
                for row in single
                if (n_seeds(results, row.training) > 1, row.is_trained) == (several, trained)
            ]
            if rows:
                sentences.append(
                    f"Of {counted(len(rows), 'test cell')} that {who} {on}: {_words_in_counts(rows)}."
                )
    return sentences


def _words_in_counts(rows: Sequence[Effect]) -> str:
    """How often each word was given, and beside *no difference found* what would have been found."""
    words = [row.word for row in rows]
    counts = [f"{word} in {n}" for word in Word if (n := words.count(word)) and word is not _NONE_FOUND]
    if unknown := words.count(DASH):
        counts.append(f"not to be told in {unknown}")
    of_none = [row for row in rows if row.word == _NONE_FOUND]
    if of_none:
        counts.append(f"{_NONE_FOUND} in {len(of_none)} ({_seen(of_none)})")
    return ", ".join(counts)


def _seen(of_none: Sequence[Effect]) -> str:
    """The smallest AUROC differences that cells without one would have shown."""
    least = sorted(
        value for row in of_none if (value := row.numbers["detectable_auroc_difference"].value) is not None
    )
    if not least:
        return "where none in AUROC, however large, would have been found with 80 % power"
    blind = len(of_none) - len(least)
    reach = rate(least[0]) if len(least) == 1 else f"{rate(least[0])} to {rate(least[-1])}"
    blind_text = f"; in {blind} of them none would" if blind else ""
    return f"the smallest in AUROC that would have been found with 80 % power: {reach}{blind_text}"


def objectives_in_words(results: Results) -> list[str]:
    """A sentence for each objective that was set beside `sft`; the better ones by name where Holm allows."""
    tests = results["objectives"]
    corrected = sum(test["p"] is not None for test in tests)
    sentences = []
    for test in tests:
        difference, p = test["miss_rate_at_far_5_difference"], test["p_holm"]
        moved = "misses less" if (difference or 0) < 0 else "misses more"
        outcome = moved if p is not None and p < LEVEL else "no difference found"
        seed = "" if test["seed"] is None else f", seed {test['seed']}"
        sentences.append(
            f"{test['objective']} against sft, trained on {test['subset']}{seed}, {test['prompt']} prompt, "
            f"at a false alarm rate of 5 % on the held-out cells: {outcome}; miss rate "
            f"{rate(test['miss_rate_at_far_5_other'])} against {rate(test['miss_rate_at_far_5_sft'])}, "
            f"{signed_with_interval(difference, test['miss_rate_at_far_5_difference_ci'])}; AUROC "
            f"{signed_with_interval(test['auroc_difference'], test['auroc_difference_ci'])} "
            f"(n = {test['n']}; after Holm's correction over {corrected} {p_value(p)})."
        )
    return sentences


def negative_in_words(results: Results) -> str:
    """Say how many held-out cells got worse, and how; empty where there are none or nothing is known."""
    held_out = [row for row in effects(results) if row.is_held_out and row.is_in_matrix]
    if not held_out:
        return ""
    lost = [row for row in held_out if row.word == Word.DISCRIMINATION_LOST]
    both = sum(row.is_inverted for row in lost)
    moved = sum(row.word in (Word.STRICTER, Word.LAXER) for row in held_out)
    of_chance = results["table"].compared(CHANCE).values()
    n_tests = sum(len(cells) for by_prompt in of_chance for cells in by_prompt.values())
    return (
        f"Negative transfer, over {counted(len(held_out), 'test cell')} that a training was not trained on: "
        f"ranked upside down (AUROC below .5 after Holm's correction over {n_tests} tests) in "
        f"{sum(row.is_inverted for row in held_out)}; discrimination lost against the base in {len(lost)}"
        f"{f', {both} of them upside down' if both else ''}; only the threshold moved (stricter or laxer, no "
        f"difference in discrimination found) in {moved}."
    )


def findings(results: Results, shorts: Mapping[str, str]) -> list[str]:
    """Say of each training whether it finds what it was trained on, and whether other cells follow."""
    sentences = []
    tested = [row for row in effects(results, shorts) if row.chance and (row.is_trained or row.is_held_out)]
    for _, of_training in groupby(tested, key=_head):
        rows = list(of_training)
        trained, held_out = ([row for row in rows if row.is_held_out == side] for side in (False, True))
        if trained:
            above = [row for row in trained if row.is_above_chance]
            outcome = f"above chance in {len(above)} of" if above else "not shown to be above chance in"
            numbers = "; ".join(_beside_others(results, row) for row in above or trained)
            sentences.append(
                f"{rows[0].subject}, {rows[0].prompt} prompt: {outcome} the "
                f"{counted(len(trained), 'cell')} it was trained on ({numbers})."
            )
        if held_out:
            n_above = sum(row.is_above_chance for row in held_out)
            aurocs = [row.chance["auroc"].value or 0.0 for row in held_out if row.chance]
            name = shorts.get(rows[0].training, rows[0].training)
            sentences.append(
                f"Of the {counted(len(held_out), 'cell')} that {name} was not trained on, "
                f"{n_above or 'none'} {'are' if n_above > 1 else 'is'} shown to be above chance (AUROC "
                f"{rate(min(aurocs))} to {rate(max(aurocs))}). Against the base: "
                f"{_words_in_counts([row for row in held_out if row.is_in_matrix])}."
            )
    return sentences


def _beside_others(results: Results, row: Effect) -> str:
    """A trained cell's AUROC, beside the base's there and that of a bag of words, which does not read."""
    beside = results["table"].lookup(BAG_OF_WORDS, row.prompt, row.cell)
    words = f", a bag of words, which does not read, {shown(beside['auroc'])}" if beside else ""
    return f"{row.title}: AUROC {row.auroc}, the base {shown(row.numbers['auroc_base'])}{words}"


def directions_in_words(results: Results, shorts: Mapping[str, str]) -> list[str]:
    """Say where heads were compared, how alike a training's seeds are, and which trainings are near."""
    facts = results.get("directions")
    if facts is None:
        return []
    aurocs = ", ".join(
        f"{short_training(name, shorts)} {rate(value)}"
        for name, value in zip(facts["trainings"], facts["validation_auroc"], strict=True)
    )
    sentences = [
        f"Compared in layer {facts['layer']}, position {facts['position']}: there the mean validation AUROC, "
        f"each training on its own cells, is the best ({aurocs}). Directions drawn at random in "
        f"{facts['hidden']:,} dimensions would have cosines within ±{rate(1.96 / facts['hidden'] ** 0.5)}, "
        "95 of 100 times."
    ]
    of_seeds = [value for i, row in enumerate(facts["cosines"]) if (value := row[i]) is not None]
    if of_seeds:
        sentences.append(
            f"Two seeds of one training: {cosine(min(of_seeds))} to {cosine(max(of_seeds))}, "
            f"{cosine(fmean(of_seeds))} on average; no two trainings can be expected to be nearer."
        )
    apart = [
        (value, f"{short_training(first, shorts)} and {short_training(second, shorts)}")
        for i, first in enumerate(facts["trainings"])
        for j, second in enumerate(facts["trainings"][:i])
        if not share_cells(results, first, second) and (value := facts["cosines"][i][j]) is not None
    ]
    if apart:
        (low, furthest), (high, nearest) = min(apart), max(apart)
        sentences.append(
            f"Of {counted(len(apart), 'pair')} of trainings without a common cell the most alike are "
            f"{nearest} ({cosine(high)}), the least alike {furthest} ({cosine(low)})."
        )
    return sentences


def print_transfer(console: Console, results: Results) -> None:
    """Print what training did, by cell, against chance and against the base; last in plain words."""
    names = short_names(results)
    rows = effects(results, names)
    _print_words(console, results, [row for row in rows if row.is_in_matrix])
    if summary := negative_in_words(results):
        say(console, summary)
        columns = (
            ("trained on", 18),
            ("tested on", 16),
            ("AUROC", 9),
            ("from the base", 12),
            ("in words", 17),
        )
        negative = [
            (f"  {row.subject}", row.title, row.auroc, row.auroc_difference, _upside_down(row))
            for row in negative_rows(rows)
        ]
        if negative:
            print_rows(console, columns, [[name for name, _ in columns]], "dim")
            print_rows(console, columns, negative)
    heads = "Directions of the linear heads (the page has all cosines)"
    say_lines(console, heads, directions_in_words(results, names))
    _print_differences(console, comparisons(results, names))
    say_lines(console, "In plain words", findings(results, names))


def _head(row: Effect) -> str:
    """The heading of a training and prompt."""
    return f"{row.subject} · {row.prompt} prompt"


def _upside_down(row: Effect) -> str:
    return f"upside down, {row.p_of_chance}; {row.word}" if row.is_inverted else row.word


def by_word(rows: Sequence[Effect]) -> list[tuple[str, list[str]]]:
    """Each word that was given, and the titles of its cells; in the order of `Word`."""
    titles = [(word.value, [row.title for row in rows if row.word == word]) for word in Word]
    return [(word, named) for word, named in titles if named]


def _print_words(console: Console, results: Results, rows: Sequence[Effect]) -> None:
    """Print what happened in which cells, by training and prompt, in the matrix's words."""
    if not rows:
        return
    n_tests = results["matrix"]["n_tests"]
    say(console, "")
    say(console, f"What training did, against the base (Holm over {n_tests} tests)", "bold")
    for head, of_training in groupby(rows, key=_head):
        say(console, head, "bold")
        lines = [(f"  {word}", ", ".join(titles)) for word, titles in by_word(list(of_training))]
        print_rows(console, (("word", 22), ("cells", 54)), lines)
    counts, doses = counted_words(results), doses_in_words(results["exposures"])
    for sentence in (*counts, *doses, *objectives_in_words(results)):
        say(console, sentence)


def _print_differences(console: Console, compared: Sequence[ComparedTraining]) -> None:
    """Print AUROC minus the base's by training and prompt, on trained and on held-out cells."""
    if not compared:
        return
    columns = (("tested on", 18), ("n", 4), ("difference", 17), ("in words", 19), ("bag of words", 13))
    start_table(console, "AUROC of each training minus its base's (same samples, 95 % intervals)", columns)
    for head, of_training in groupby(compared, key=lambda of: _head(of.effect)):
        say(console, head, "bold")
        lines = [
            (
                f" {of.where}",
                value_of(of.effect.numbers["n_both_with_score"]),
                of.effect.auroc_difference,
                str(finding(of.effect.numbers["auroc_difference"].interval)),
                of.bag_of_words,
            )
            for of in of_training
        ]
        print_rows(console, columns, lines)
    say(console, "Bag of words: AUROC over all its samples there; (mean): of its AUROCs by cell.", "dim")
