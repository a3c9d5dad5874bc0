"""Reading `metrics.json`: what is in it, in which order it is shown, and under which names.

A *reference* (a baseline such as bag of words) reads no prompt, so it stands beside the monitors of
every prompt. An *adapter* is named `<base>+<what it was trained on>`.
"""

from collections.abc import Iterable
from enum import StrEnum
from statistics import fmean
from typing import NamedTuple

from monitorbench.metrics.columns import OVERALL, WITH_THINKING, WITHOUT_THINKING, stratum_name
from monitorbench.metrics.marks import MARK, NO_STRATUM, SIGN, in_words, shown_name
from monitorbench.metrics.results import NO_PROMPT, Results
from monitorbench.metrics.table import Number, Numbers, is_cell, is_slice
from monitorbench.metrics.transfer import TransferDifference
from monitorbench.metrics.words import CellVerdict
from monitorbench.records import Category, Task, vocabulary

BAG_OF_WORDS = "bag_of_words"
_SHORTCUTS = (BAG_OF_WORDS, "echo", "overlap", "form", "all_shortcuts")


def prompts(results: Results) -> list[str]:
    """The prompts that monitors were run with; only `none` where there are but references."""
    names = dict.fromkeys(prompt for _, prompt in results["table"].judged())
    return [prompt for prompt in names if prompt != NO_PROMPT] or list(names)


def monitors(results: Results) -> list[str]:
    """Monitors in the order they are shown: a base before its adapters, references last."""

    def rank(name: str) -> tuple[bool, str, bool]:
        return is_reference(results, name), base_of(name), name != base_of(name)

    return sorted(dict.fromkeys(name for name, _ in results["table"].judged()), key=rank)


def judged(results: Results) -> list[tuple[str, str]]:
    """Each monitor in the order of `monitors`, with each of its prompts."""
    return [(name, prompt) for name in monitors(results) for prompt in prompts_of(results, name)]


def prompts_of(results: Results, monitor: str) -> list[str]:
    """The prompts that a monitor was run with."""
    return [prompt for name, prompt in results["table"].judged() if name == monitor]


def prompt_pairs(results: Results, monitor: str) -> list[tuple[str, str]]:
    """The direct prompts that a monitor was run with, each with its evidence counterpart."""
    names = prompts_of(results, monitor)
    pairs = [(name, name.replace("direct", "evidence")) for name in names if "direct" in name]
    return [pair for pair in pairs if pair[1] in names]


def is_reference(results: Results, monitor: str) -> bool:
    """Whether a monitor reads no prompt."""
    return prompts_of(results, monitor) == [NO_PROMPT]


def meaning(results: Results) -> str:
    """Meaning of the positive label in the judged data, in quotation marks; "" where it is misbehavior."""
    means = results["dataset"].get("positive_means", "")
    return f"“{means}”" if means else ""


def shown_in(results: Results, cell: str) -> list[str]:
    """The monitors whose numbers are shown in a cell: but overall, of the baselines those that see a text."""
    names = monitors(results)
    if cell == OVERALL:
        return names
    return [name for name in names if name in _SHORTCUTS or not is_reference(results, name)]


def drawn_in(results: Results) -> list[str]:
    """The monitors that figures of their own, or curves, are drawn of: bag of words is baseline enough."""
    names = monitors(results)
    return [name for name in names if name == BAG_OF_WORDS or not is_reference(results, name)]


def base_of(monitor: str) -> str:
    """The model below an adapter; the name itself where there is no adapter."""
    return monitor.partition("+")[0] or monitor


def short_names(results: Results) -> dict[str, str]:
    """`+all` for `smollm2_135m+all`, where only one base is there to be meant; of trainings too."""
    names = list(dict.fromkeys([*monitors(results), *results["effects"]]))
    one_base = len({base_of(name) for name in names if not is_reference(results, name)}) == 1
    return {
        name: name.removeprefix(base_of(name)) if one_base and name != base_of(name) else name
        for name in names
    }


def ordered_cells(names: set[str]) -> list[str]:
    """`overall`, each category before its tasks, slices by task and trace; other names last.

    The paper's categories and tasks come in their order, then a team's own by name.
    """
    return sorted(names, key=_place)


def grid(results: Results) -> tuple[list[str], list[str]]:
    """A heat map's categories and tasks: all of the paper's; beside a team's own those that are there."""
    cells = [name.split("/") for name in inner_cells(results, OVERALL)]
    categories, tasks = {category for category, _ in cells}, {task for _, task in cells}
    if categories <= set(Category) and tasks <= set(Task):
        return [*vocabulary(Category)], [*vocabulary(Task)]
    return _in_order(Category, categories), _in_order(Task, tasks)


def _in_order(kind: type[StrEnum], names: Iterable[str]) -> list[str]:
    """Categories or tasks, the paper's first."""
    return sorted(names, key=lambda name: _rank(kind, name))


def _rank(kind: type[StrEnum], name: str) -> tuple[int, str]:
    members = list(kind)
    return (members.index(kind(name)) if name in members else len(members), name)


def _place(name: str) -> tuple[int, tuple[int, str], bool, tuple[int, str]]:
    nowhere = (0, "")
    if name == OVERALL:
        return 0, nowhere, False, nowhere
    if name.startswith("task:"):
        return 2, nowhere, False, _rank(Task, name.removeprefix("task:"))
    if name in (WITHOUT_THINKING, WITH_THINKING):
        return 3, (int(name == WITH_THINKING), ""), False, nowhere
    if ":" in name or name in ("trained", "held_out"):
        return 4, (0, name), False, nowhere
    category, slash, task = name.partition("/")
    return 1, _rank(Category, category), bool(slash), _rank(Task, task)


def cells(results: Results, prompt: str) -> list[str]:
    """The cells that some monitor has numbers for, under a prompt."""
    return ordered_cells({name for name in _parts(results, prompt) if is_cell(name)})


def slices(results: Results, prompt: str) -> list[str]:
    """The slices but strata that some monitor has numbers for, under a prompt."""
    return ordered_cells(
        {name for name in _parts(results, prompt) if is_slice(name) and not _is_stratum(name)}
    )


def _parts(results: Results, prompt: str) -> set[str]:
    table = results["table"]
    return {
        name
        for monitor, own_prompt in table.judged()
        if own_prompt == prompt
        for name in table.parts(monitor, own_prompt)
    }


def strata(results: Results, prompt: str, cell: str) -> list[str]:
    """The strata that stand beside a cell, as `slices` names them: all but the headline."""
    headline = results["headline"].get(cell)
    names = {name for name in _parts(results, prompt) if _is_stratum(name) and name.partition(":")[0] == cell}
    return sorted(name for name in names if headline is None or name != stratum_name(cell, headline))


def _is_stratum(name: str) -> bool:
    return "/" in name.partition(":")[0] and ":" in name


def title(results: Results, name: str) -> str:
    """A cell as it is shown above its numbers: `safety_permission/qa (compliant)†`; also a stratum.

    In brackets the headline, the stratum whose numbers the cell's are; the sign says that a shortcut gives
    the label away.
    """
    headline = results["headline"].get(name)
    stratum = f" ({headline or NO_STRATUM})" if headline is not None else ""
    label = shown_name(name) if _is_stratum(name) else name
    return f"{label}{stratum}{SIGN if is_marked(results, name) else ''}"


def is_marked(results: Results, name: str) -> bool:
    """Whether a shortcut gives the label of a cell, or stratum, away."""
    return name in results["shortcuts"] and results["shortcuts"][name]["marked_by"] is not None


def checked(results: Results) -> list[str]:
    """The cells that the shortcut checks are of, each with its strata behind it."""
    return sorted(results["shortcuts"], key=lambda name: (_place(name.partition(":")[0]), name))


def marks_in_words(results: Results) -> list[str]:
    """Explain the sign at a name, and what gives away the label of each marked cell and stratum."""
    lines = []
    for name in checked(results):
        shortcuts = results["shortcuts"][name]
        if (by := shortcuts["marked_by"]) is not None:
            words = in_words(by, shortcuts["checks"][by])
            lines.append(f"{title(results, name).removesuffix(SIGN)}: {words}")
    if not lines:
        return []
    return [f"{SIGN} A shortcut gives the label away (AUROC surely above {MARK:.2f}):", *lines]


def headlines_in_words(results: Results) -> list[str]:
    """List the cells whose numbers are one stratum's."""
    return [
        f"{cell}: numbers of its stratum {stratum or NO_STRATUM}; overall and its category have all samples."
        for cell, stratum in results["headline"].items()
    ]


def lookup(results: Results, monitor: str, prompt: str, part: str = OVERALL) -> Numbers | None:
    """A monitor's numbers in a cell or slice; a reference has the same under every prompt."""
    own_prompt = NO_PROMPT if is_reference(results, monitor) else prompt
    return results["table"].parts(monitor, own_prompt).get(part)


def value(results: Results, monitor: str, prompt: str, metric: str, part: str = OVERALL) -> float | None:
    """One number of a monitor; None where it is undefined, or not there."""
    numbers = lookup(results, monitor, prompt, part)
    return numbers[metric].value if numbers else None


def is_trained(results: Results, training: str, cell: str) -> bool:
    """Whether a training (or adapter) was on a cell; on an aggregate: on every tested cell of it."""
    adapter = results["adapters"].get(training, [training])[0]
    terms = results["trained_on"].get(adapter, [])
    inside = inner_cells(results, cell)
    return bool(inside) and all(inner in terms or inner.partition("/")[0] in terms for inner in inside)


def inner_cells(results: Results, cell: str) -> list[str]:
    """The `category/task` cells of the test split inside a cell."""
    table = results["table"]
    names = {name for judged in table.judged() for name in table.parts(*judged) if is_cell(name)}
    return [
        name
        for name in ordered_cells(names)
        if "/" in name and (cell in (OVERALL, name) or name.startswith(f"{cell}/"))
    ]


def cell_verdict(results: Results, training: str, prompt: str, cell: str) -> CellVerdict | None:
    """The word of a training's cell, where the matrix has one."""
    return results["matrix"]["words"].get(training, {}).get(prompt, {}).get(cell)


def n_seeds(results: Results, training: str) -> int:
    """How many adapters a statement about a training rests on."""
    return len(results["adapters"].get(training, [training]))


def training_of(results: Results, adapter: str) -> str:
    """The training of an adapter; the adapter itself where its training has one seed."""
    return next((name for name, adapters in results["adapters"].items() if adapter in adapters), adapter)


def matrix_rows(results: Results) -> list[str]:
    """The rows of a transfer matrix: as `shown_in`, the adapters of several seeds as their one training."""
    return list(dict.fromkeys(training_of(results, name) for name in shown_in(results, "")))


class ComparedTraining(NamedTuple):
    """A training, of one seed or of several, against its base on a set of cells."""

    training: str
    prompt: str
    where: str
    n_cells: int
    difference: TransferDifference
    bag_of_words: "WordsBaseline"


class WordsBaseline(NamedTuple):
    """Bag of words' AUROC on a set of cells; `is_mean` of its cells, where no cell is just that set."""

    auroc: Number | None
    is_mean: bool


def comparisons(results: Results) -> list[ComparedTraining]:
    """Each training and prompt: overall, on the cells it was trained on, on the others; none empty.

    Where it was trained on all of them, overall is the same and left out.
    """
    compared: list[ComparedTraining] = []
    everything = inner_cells(results, OVERALL)
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


def _bag_of_words_on(results: Results, inside: list[str]) -> WordsBaseline:
    """Bag of words' AUROC on exactly these cells, or else the mean over them."""
    parts = results["table"].parts(BAG_OF_WORDS, NO_PROMPT)
    for name, numbers in parts.items():
        if inside and inner_cells(results, name) == inside and name not in results["headline"]:
            return WordsBaseline(numbers["auroc"], False)
    aurocs = [value for cell in inside if cell in parts and (value := parts[cell]["auroc"].value) is not None]
    is_known = aurocs and len(aurocs) == len(inside)
    return WordsBaseline(Number("auroc", fmean(aurocs)) if is_known else None, True)
