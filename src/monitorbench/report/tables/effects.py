"""What each training did in each cell, as rows: page, matrices, sentences and terminal look up the same.

Promises: a difference counts where it does after Holm's correction over the matrix; a training of one seed
says so.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.marks import title
from monitorbench.metrics.registry import MEASURES
from monitorbench.metrics.results import Results, effects_of, is_trained, n_seeds
from monitorbench.metrics.table import BAG_OF_WORDS, CHANCE, NO_PROMPT, Numbers, Place, place_of
from monitorbench.metrics.trainings import SeedSpread, spreads
from monitorbench.metrics.words import LEVEL, Word, is_told, word
from monitorbench.metrics.written import DASH, MINUS, counted, interval_of, rate, shown, value_of

_WHERE = {OVERALL: "all", "trained": "trained", "held_out": "held out"}


class Effect(NamedTuple):
    """What is known of a training in a cell, under one prompt; `held_out` and `trained` are cells too."""

    training: str
    prompt: str
    cell: str
    subject: str
    """The training as the subject of a sentence: over its seeds, or one seed alone."""
    title: str
    is_trained: bool
    is_held_out: bool
    """Whether it is one cell that the training was not on, of a training whose cells are known."""
    numbers: Numbers
    """The training set against its base; in a cell of the matrix with `words.CORRECTED`."""
    chance: Numbers | None
    """The training's AUROC set against .5."""

    @property
    def is_in_matrix(self) -> bool:
        """Whether it is a cell of the matrix, which has a word."""
        return is_told(self.numbers)

    @property
    def word(self) -> str:
        """The outcome in a word; a dash where none can be had."""
        return word(self.numbers) or DASH

    @property
    def is_inverted(self) -> bool:
        """Whether it ranks the samples upside down: the AUROC lies below .5 after Holm's correction."""
        return bool(self.chance and (self.chance["auroc"].value or 0) < 0.5 and _is_shown(self.chance))

    @property
    def is_above_chance(self) -> bool:
        """Whether its AUROC lies above .5 after Holm's correction over all trainings and cells."""
        return bool(self.chance and (self.chance["auroc"].value or 0) > 0.5 and _is_shown(self.chance))

    @property
    def auroc(self) -> str:
        """AUROC with its interval."""
        return shown(self.chance["auroc"]) if self.chance else DASH

    @property
    def p_of_chance(self) -> str:
        """Corrected p of the hypothesis that its AUROC is .5."""
        return shown(self.chance["p_holm"]) if self.chance else f"p {DASH}"

    @property
    def auroc_difference(self) -> str:
        """Difference in AUROC from the base, with its interval."""
        return shown(self.numbers["auroc_difference"])

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Differences from the base in `MEASURES`: value, interval, and Holm's p where there is one."""
        texts = []
        for measure in MEASURES:
            moved, p = self.numbers[f"{measure}_difference"], self.numbers.get(f"{measure}_p_holm")
            p_text = "" if p is None or p.value is None else shown(p)
            texts.append((value_of(moved), interval_of(moved), p_text))
        return texts

    @property
    def detectable(self) -> str:
        """The smallest AUROC difference that the cell would have shown."""
        if word(self.numbers) is None:
            return DASH
        least = self.numbers["detectable_auroc_difference"]
        return "none" if least.value is None else shown(least)


def _is_shown(chance: Numbers) -> bool:
    p = chance["p_holm"].value
    return p is not None and p < LEVEL


def effects(results: Results, shorts: Mapping[str, str] | None = None) -> list[Effect]:
    """List what each training did, by training, prompt and cell; `shorts` has the names of subjects."""
    rows = []
    for training, by_prompt in effects_of(results).items():
        name, n = (shorts or {}).get(training, training), n_seeds(results, training)
        is_known = bool(results["trained_on"].get(results["adapters"].get(training, [training])[0]))
        for prompt, by_cell in by_prompt.items():
            for cell in sorted(by_cell, key=lambda cell: (cell == "held_out", place_of(cell))):
                trained = is_trained(results, training, cell)
                rows.append(
                    Effect(
                        training,
                        prompt,
                        cell,
                        f"{name} over {n} seeds" if n > 1 else f"{name} (one seed)",
                        title(results, cell),
                        trained,
                        is_known and "/" in cell and not trained,
                        by_cell[cell],
                        results["table"].numbers(Place(training, prompt, cell, against=CHANCE)),
                    )
                )
    return rows


def seed_rows(results: Results) -> list[tuple[str, ...]]:
    """Each training of several seeds, in each cell: how many, and mean ± SD (range) of `MEASURES`."""
    return [
        (
            f"{name}, {prompt}",
            title(results, cell),
            str(max(spread["n"] for spread in by_measure.values())),
            *(_spread(by_measure.get(measure)) for measure in MEASURES),
        )
        for name, by_seed in results["seeds"].items()
        for prompt, by_cell in spreads(results["table"], by_seed.values()).items()
        for cell in sorted(by_cell, key=place_of)
        if (by_measure := by_cell[cell])
    ]


def _spread(found: SeedSpread | None) -> str:
    if found is None:
        return DASH
    sd = f" ± {rate(found['sd'])}" if found["sd"] is not None else ""
    return f"{rate(found['mean'])}{sd} ({rate(found['low'])} to {rate(found['high'])})"


class ComparedTraining(NamedTuple):
    """A training against its base on a set of cells."""

    effect: Effect
    where: str
    """The cells, in words of at most 17 characters."""
    n_cells: int
    bag_of_words: str
    """Bag of words' AUROC beside the difference, with its interval or as the mean it is."""


def comparisons(results: Results, shorts: Mapping[str, str] | None = None) -> list[ComparedTraining]:
    """Each training and prompt: overall, on the cells it was trained on, on the others; none empty.

    Where it was trained on all of them, overall is the same and left out.
    """
    compared = []
    everything = results["table"].inner_cells(OVERALL)
    for row in effects(results, shorts):
        trained = [cell for cell in everything if is_trained(results, row.training, cell)]
        held_out = [cell for cell in everything if cell not in trained]
        inside = {OVERALL: everything, "trained": trained, "held_out": held_out}.get(row.cell)
        same = row.cell == OVERALL and trained and not held_out
        if inside is not None and row.numbers["n"].value and not same:
            where = f"{_WHERE[row.cell]}, {counted(len(inside), 'cell')}"
            compared.append(ComparedTraining(row, where, len(inside), _bag_of_words_on(results, inside)))
    return compared


def _bag_of_words_on(results: Results, inside: list[str]) -> str:
    """Bag of words' AUROC with its interval on exactly these cells, or else the mean over them."""
    parts = results["table"].parts(BAG_OF_WORDS, NO_PROMPT)
    for name, numbers in parts.items():
        if inside and results["table"].inner_cells(name) == inside and name not in results["headline"]:
            return shown(numbers["auroc"])
    aurocs = [value for cell in inside if cell in parts and (value := parts[cell]["auroc"].value) is not None]
    return f"{rate(fmean(aurocs))} (mean)" if aurocs and len(aurocs) == len(inside) else DASH


def negative_rows(rows: Sequence[Effect]) -> list[Effect]:
    """Held-out cells that are ranked upside down, or worse than by the base; the lowest AUROC first."""
    negative = [
        row for row in rows if row.is_held_out and (row.is_inverted or row.word == Word.DISCRIMINATION_LOST)
    ]
    return sorted(negative, key=lambda row: row.chance["auroc"].value or 0.0 if row.chance else 1.0)


def cosine(value: float | None) -> str:
    """`.41`, `−.07`."""
    return DASH if value is None else (MINUS if round(value, 2) < 0 else "") + rate(abs(value))


def share_cells(results: Results, *trainings: str) -> bool:
    """Whether two trainings saw samples of a common cell, by which alone their directions would be alike."""
    ours, theirs = (
        set(results["trained_on"].get(results["adapters"].get(name, [name])[0], [])) for name in trainings
    )
    return bool(ours & theirs)


def short_training(training: str, shorts: Mapping[str, str]) -> str:
    """Name the training of a head."""
    return shorts.get(training, training).removesuffix("_linear_probe")
