"""Matrices: a number of every monitor in every cell as a table of coloured tiles, and cosines of heads.

A page has them as HTML, which `templates/matrix.html.j2` writes: numbers can be copied, a tile can be a link,
and the colours are mixed with those of the page, light or dark.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.marks import SIGN, has_mark
from monitorbench.metrics.registry import Measure
from monitorbench.metrics.results import effects_of, is_trained, n_seeds, training_of
from monitorbench.metrics.table import Numbers
from monitorbench.metrics.trainings import spread
from monitorbench.metrics.words import Word, counts
from monitorbench.metrics.words import word as word_of
from monitorbench.metrics.written import rate, shown, value_of
from monitorbench.report.sections.section import Material
from monitorbench.report.tables.effects import cosine, share_cells, short_training

TITLES: dict[Measure, str] = {
    "auroc": "AUROC",
    "miss_rate": "miss rate",
    "false_alarm_rate": "false alarm rate",
    "miss_rate_at_far_5": "miss rate at FAR 5 %",
}
_VERDICTS = {"miss_rate": "miss", "false_alarm_rate": "alarm"}
"""Names on the samples page for the verdicts that a rate counts."""


class Tile(NamedTuple):
    """A cell of a matrix."""

    text: str
    kind: str = ""
    """Its colour: `errors`, `above` or `below` .5; empty where there is no number."""
    share: float = 0.0
    """Strength of the colour, in [0, 1]."""
    change: str = ""
    """Difference from the base."""
    is_clear: bool = False
    """Whether the difference counts after Holm's correction."""
    words: str = ""
    is_outlined: bool = False
    link: str = ""
    """Address of the samples that the number counts."""


class TileTable(NamedTuple):
    """A table of tiles."""

    title: str
    groups: list[tuple[str, int]]
    """What stands over the columns' heads, each with its number of columns; empty for no such line."""
    columns: list[str]
    heads: list[str]
    """The columns by their whole names, for cards that stand without the line of heads."""
    rows: list[tuple[str, list[Tile]]]
    """The name of each row, and its tiles."""


def matrix(material: Material, names: Iterable[str], prompt: str, measure: Measure) -> TileTable:
    """A measure of the monitors named on each test cell; under a training's, its difference from the base.

    Of several seeds it is their mean. AUROC's has the words too.
    """
    results, shorts = material.results, material.short_names
    columns = [OVERALL, *results["table"].inner_cells(OVERALL)]
    effects = effects_of(results)
    rows = []
    for name in dict.fromkeys(training_of(results, name) for name in names):
        seeds = f" ({n} seeds)" if (n := n_seeds(results, name)) > 1 else ""
        changes = effects.get(name, {}).get(prompt, {})
        tiles = [
            _tile(material, name, prompt, measure, cell, changes.get(cell))._replace(
                is_outlined=name in effects and is_trained(results, name, cell)
            )
            for cell in columns
        ]
        rows.append((f"{shorts.get(name, name)}{seeds}", tiles))
    heads = [cell.partition("/")[2] or cell for cell in columns]
    signs = [SIGN if has_mark(results, cell) else "" for cell in columns]
    return TileTable(
        f"{TITLES[measure]}, prompt: {prompt}",
        [(category, len([*of])) for category, of in groupby(columns, lambda cell: cell.rpartition("/")[0])],
        [head + sign for head, sign in zip(heads, signs, strict=True)],
        [cell + sign for cell, sign in zip(columns, signs, strict=True)],
        rows,
    )


def cosines(material: Material) -> TileTable:
    """The cosines of `results["directions"]`; rows and columns are numbered alike."""
    results, facts = material.results, material.results["directions"]
    names = facts["trainings"]
    rows = []
    for i, (name, values) in enumerate(zip(names, facts["cosines"], strict=True)):
        tiles = [
            _coloured(cosine(value), None if value is None else (1 + value) / 2, is_good=True)._replace(
                is_outlined=i != j and share_cells(results, name, names[j])
            )
            for j, value in enumerate(values)
        ]
        rows.append((f"{i + 1}. {short_training(name, material.short_names)}", tiles))
    numbers = [str(i + 1) for i in range(len(names))]
    return TileTable("cosines between heads", [], numbers, numbers, rows)


def word(numbers: Numbers) -> str:
    """The word of a cell, and where no difference was found the smallest AUROC difference it would show."""
    in_a_word = word_of(numbers)
    if in_a_word is not Word.NO_DIFFERENCE_FOUND:
        return in_a_word or ""
    least = numbers["detectable_auroc_difference"]
    return "none found, " + (f"sees {shown(least)}" if least.value is not None else "sees none")


def _tile(
    material: Material, name: str, prompt: str, measure: Measure, cell: str, numbers: Numbers | None
) -> Tile:
    """A monitor's number in a cell; `numbers` set it against its base."""
    value = _value(material, name, prompt, measure, cell)
    tile = _coloured(rate(value), value, is_good=measure == "auroc")
    # A rate of 0 counts no sample, and the samples page knows no strata.
    if value and measure in _VERDICTS and cell not in material.results["headline"]:
        link = material.samples_link(name, prompt, cell=cell, verdict=_VERDICTS[measure])
        tile = tile._replace(link=link)
    moved = numbers and numbers[f"{measure}_difference"]
    if value is None or not numbers or not moved or moved.value is None:
        return tile
    is_clear = counts(numbers, measure)
    return tile._replace(
        change=value_of(moved) + ("*" if is_clear else ""),
        is_clear=is_clear,
        words=word(numbers) if measure == "auroc" else "",
    )


def _value(material: Material, name: str, prompt: str, measure: Measure, cell: str) -> float | None:
    """A monitor's number, or the mean over a training's seeds."""
    table = material.results["table"]
    if by_seed := material.results["seeds"].get(name):
        of_seeds = spread([table.value(adapter, prompt, measure, cell) for adapter in by_seed.values()])
        return of_seeds and of_seeds["mean"]
    return table.value(name, prompt, measure, cell)


def _coloured(text: str, value: float | None, is_good: bool) -> Tile:
    """A tile of a value in [0, 1]: errors get darker with it, what is good from .5 both ways."""
    if value is None:
        return Tile(text)
    if not is_good:
        return Tile(text, "errors", round(value, 3))
    return Tile(text, "above" if value >= 0.5 else "below", round(2 * abs(value - 0.5), 3))
