"""What a transfer study found, in sentences: what was learnt, what followed, what points the wrong way."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from monitorbench.config.terminal import Console
from monitorbench.metrics.marks import title
from monitorbench.metrics.results import Results, cell_verdict, is_trained, short_names
from monitorbench.metrics.table import BAG_OF_WORDS, ordered_cells
from monitorbench.metrics.trainings import DirectionsFacts
from monitorbench.metrics.words import AgainstChance, Word
from monitorbench.metrics.written import (
    DASH,
    MINUS,
    counted,
    p_value,
    rate,
    rate_with_interval,
    shown,
    signed_with_interval,
)
from monitorbench.report.tables.terminal import print_rows, say
from monitorbench.report.tables.transfer import subject, words_in_counts

_NEGATIVE_COLUMNS = (
    ("trained on", 18),
    ("tested on", 16),
    ("AUROC", 9),
    ("from the base", 12),
    ("in words", 17),
)
_COSINES = 8
"""Cosines in a line of 80 columns."""
_MOVED = (Word.STRICTER, Word.LAXER)


class HeldOutRow(NamedTuple):
    """A training in a test cell that it was not trained on."""

    training: str
    prompt: str
    cell: str
    rank: float
    """AUROC; 1 where it has no test against .5."""
    auroc: str
    """AUROC with its interval."""
    p: str
    """p-value against an AUROC of .5, after Holm's correction."""
    difference: str
    """Difference in AUROC from the base, with its interval."""
    is_inverted: bool
    """Whether it ranks the samples upside down: the AUROC lies below .5, and p below the matrix's level."""
    word: str


def negative_rows(results: Results, shorts: Mapping[str, str]) -> list[HeldOutRow]:
    """Held-out cells that are ranked upside down, or worse than by the base; the lowest AUROC first."""
    rows = _held_out(results, shorts)
    return sorted(
        (row for row in rows if row.is_inverted or row.word == Word.DISCRIMINATION_LOST),
        key=lambda row: row.rank,
    )


def negative_in_words(results: Results) -> str:
    """Say how many held-out cells got worse, and how; empty where there are none or nothing is known."""
    held_out = _held_out(results, {})
    if not held_out:
        return ""
    inverted = sum(cell.is_inverted for cell in held_out)
    lost = sum(cell.word == Word.DISCRIMINATION_LOST for cell in held_out)
    both = sum(cell.is_inverted and cell.word == Word.DISCRIMINATION_LOST for cell in held_out)
    moved = sum(cell.word in _MOVED for cell in held_out)
    n_tests = sum(len(cells) for by_prompt in results["chance"].values() for cells in by_prompt.values())
    return (
        f"Negative transfer, over {counted(len(held_out), 'test cell')} that a training was not trained on: "
        f"ranked upside down (AUROC below .5 after Holm's correction over {n_tests} tests) in {inverted}; "
        f"discrimination lost against the base in {lost}"
        f"{f', {both} of them upside down' if both else ''}; only the threshold moved (stricter or laxer, no "
        f"difference in discrimination found) in {moved}."
    )


def _held_out(results: Results, shorts: Mapping[str, str]) -> list[HeldOutRow]:
    rows = []
    for training, by_prompt in results["matrix"]["words"].items():
        if not _knows_its_cells(results, training):
            continue
        for prompt, by_cell in by_prompt.items():
            for cell in ordered_cells(set(by_cell)):
                if "/" not in cell or is_trained(results, training, cell):
                    continue
                chance = results["chance"].get(training, {}).get(prompt, {}).get(cell)
                d = results["effects"][training][prompt][cell]
                level = results["matrix"]["level"]
                rows.append(
                    HeldOutRow(
                        training=subject(results, training, shorts),
                        prompt=prompt,
                        cell=title(results, cell),
                        rank=chance["auroc"] if chance else 1.0,
                        auroc=rate_with_interval(chance["auroc"], chance["auroc_ci"]) if chance else DASH,
                        p=p_value(chance["p_holm"]) if chance else DASH,
                        difference=signed_with_interval(d["auroc_difference"], d["auroc_difference_ci"]),
                        is_inverted=bool(chance and chance["auroc"] < 0.5 and chance["p_holm"] < level),
                        word=by_cell[cell]["word"] or DASH,
                    )
                )
    return rows


def _knows_its_cells(results: Results, training: str) -> bool:
    return bool(results["trained_on"].get(results["adapters"].get(training, [training])[0]))


def cosine(value: float | None) -> str:
    """`.41`, `−.07`."""
    if value is None:
        return DASH
    return (MINUS if round(value, 2) < 0 else "") + rate(abs(value))


def directions_in_words(results: Results, shorts: Mapping[str, str]) -> list[str]:
    """Say where heads were compared, how alike a training's seeds are, and which trainings are near."""
    facts = results.get("directions")
    if facts is None:
        return []
    aurocs = ", ".join(
        f"{_short(name, shorts)} {rate(value)}"
        for name, value in zip(facts["trainings"], facts["validation_auroc"], strict=True)
    )
    sentences = [
        f"Compared in layer {facts['layer']}, position {facts['position']}: there the mean validation AUROC, "
        f"each training on its own cells, is the best ({aurocs}). Directions drawn at random in "
        f"{facts['hidden']:,} dimensions would have cosines within ±{rate(1.96 / facts['hidden'] ** 0.5)}, "
        "95 of 100 times."
    ]
    seeds = [row[i] for i, row in enumerate(facts["cosines"])]
    if seed_cosines := [value for value in seeds if value is not None]:
        least, most = cosine(min(seed_cosines)), cosine(max(seed_cosines))
        sentences.append(
            f"Two seeds of one training: {least} to {most}, {cosine(fmean(seed_cosines))} on average; no two "
            "trainings can be expected to be nearer."
        )
    apart = [
        (value, first, second)
        for i, first in enumerate(facts["trainings"])
        for j, second in enumerate(facts["trainings"][:i])
        if not share_cells(results, first, second) and (value := facts["cosines"][i][j]) is not None
    ]
    if apart:
        (low, *furthest), (high, *nearest) = min(apart), max(apart)
        near, far = (" and ".join(_short(str(name), shorts) for name in two) for two in (nearest, furthest))
        sentences.append(
            f"Of {counted(len(apart), 'pair')} of trainings without a common cell the most alike are {near} "
            f"({cosine(high)}), the least alike {far} ({cosine(low)})."
        )
    return sentences


def share_cells(results: Results, one: str, other: str) -> bool:
    """Whether two trainings saw samples of a common cell, by which alone their directions would be alike."""
    ours, theirs = (
        set(results["trained_on"].get(results["adapters"].get(name, [name])[0], [])) for name in (one, other)
    )
    return bool(ours & theirs)


def direction_rows(facts: DirectionsFacts, shorts: Mapping[str, str]) -> list[list[str]]:
    """A row a training: its number, its name, and its cosine with each, as text."""
    return [
        [str(number), _short(name, shorts), *map(cosine, row)]
        for number, (name, row) in enumerate(zip(facts["trainings"], facts["cosines"], strict=True), start=1)
    ]


def _short(training: str, shorts: Mapping[str, str]) -> str:
    return shorts.get(training, training).removesuffix("_linear_probe")


def print_negative(console: Console, results: Results) -> None:
    """The held-out cells that a training made worse: upside down, or discrimination lost."""
    if not (summary := negative_in_words(results)):
        return
    say(console, summary)
    rows = negative_rows(results, short_names(results))
    if rows:
        print_rows(console, _NEGATIVE_COLUMNS, [[name for name, _ in _NEGATIVE_COLUMNS]], "dim")
    for row in rows:
        word = f"upside down, {row.p}; {row.word}" if row.is_inverted else row.word
        cells = [f"  {row.training}", row.cell, row.auroc, row.difference, word]
        print_rows(console, _NEGATIVE_COLUMNS, [cells])


def print_directions(console: Console, results: Results) -> None:
    """Cosines of linear heads, a row a training, in blocks of so many columns as a line holds."""
    facts = results.get("directions")
    if facts is None:
        return
    names = short_names(results)
    say(console, "")
    say(console, "Directions of the linear heads: cosines (diagonal: two seeds of one training)", "bold")
    rows = direction_rows(facts, names)
    for start in range(0, len(rows), _COSINES):
        block = rows[start : start + _COSINES]
        columns = [("", 2), ("", 28), *((row[0], 4) for row in block)]
        print_rows(console, columns, [[name for name, _ in columns]], "dim")
        cosines = slice(2 + start, 2 + start + _COSINES)
        print_rows(console, columns, [[*row[:2], *row[cosines]] for row in rows])
    for sentence in directions_in_words(results, names):
        say(console, sentence)


def findings(results: Results, shorts: Mapping[str, str]) -> list[str]:
    """Say of each training whether it finds what it was trained on, and whether other cells follow.

    Above chance: the AUROC in a cell lies above .5 after Holm's correction over all trainings and cells.
    """
    sentences = []
    for training, by_prompt in results["chance"].items():
        if not _knows_its_cells(results, training):
            continue
        for prompt, tests in by_prompt.items():
            cells = ordered_cells(set(tests))
            trained = [cell for cell in cells if is_trained(results, training, cell)]
            held_out = [cell for cell in cells if cell not in trained]
            if trained:
                above = _above_chance(results, tests, trained)
                outcome = f"above chance in {len(above)} of" if above else "not shown to be above chance in"
                numbers = "; ".join(_in_cell(results, training, prompt, cell) for cell in above or trained)
                sentences.append(
                    f"{subject(results, training, shorts)}, {prompt} prompt: {outcome} the "
                    f"{counted(len(trained), 'cell')} it was trained on ({numbers})."
                )
            if held_out:
                above = _above_chance(results, tests, held_out)
                aurocs = [tests[cell]["auroc"] for cell in held_out]
                words = [v for c in held_out if (v := cell_verdict(results, training, prompt, c))]
                outcome = f"{len(above) or 'none'} {'are' if len(above) > 1 else 'is'}"
                sentences.append(
                    f"Of the {counted(len(held_out), 'cell')} that {shorts.get(training, training)} was not "
                    f"trained on, {outcome} shown to be above chance (AUROC {rate(min(aurocs))} to "
                    f"{rate(max(aurocs))}). Against the base: {words_in_counts(words)}."
                )
    return sentences


def _above_chance(results: Results, tests: Mapping[str, AgainstChance], cells: Sequence[str]) -> list[str]:
    level = results["matrix"]["level"]
    return [cell for cell in cells if tests[cell]["auroc"] > 0.5 and tests[cell]["p_holm"] < level]


def _in_cell(results: Results, training: str, prompt: str, cell: str) -> str:
    """A trained cell's AUROC, beside the base's there and that of a bag of words, which does not read."""
    test, base = results["chance"][training][prompt][cell], results["effects"][training][prompt].get(cell)
    beside = results["table"].lookup(BAG_OF_WORDS, prompt, cell)
    others = [
        *([f"the base {rate(base['auroc_base'])}"] if base else []),
        *([f"a bag of words, which does not read, {shown(beside['auroc'])}"] if beside else []),
    ]
    auroc = rate_with_interval(test["auroc"], test["auroc_ci"])
    return f"{title(results, cell)}: AUROC {auroc}{', ' if others else ''}{', '.join(others)}"


def print_findings(console: Console, results: Results) -> None:
    """Print what a transfer study found, in sentences; the last of its tables."""
    sentences = findings(results, short_names(results))
    if sentences:
        say(console, "")
        say(console, "In plain words", "bold")
    for sentence in sentences:
        say(console, sentence)
