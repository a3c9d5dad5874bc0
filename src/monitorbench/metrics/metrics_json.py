"""Views of the results table: the trees of `metrics.json`, written and read back, and the rows of both CSVs.

In `table.csv` and `transfer.csv` every number and every bound has a column of its own, unrounded; what is
undefined is an empty field.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.cost_fronts import cost_fronts, rate_fronts
from monitorbench.metrics.marks import strata
from monitorbench.metrics.prompts import shared_numbers, spread_of
from monitorbench.metrics.registry import as_json, from_json
from monitorbench.metrics.results import SCHEMA_VERSION, Results, effects_of, numbers_at
from monitorbench.metrics.summary import Curves
from monitorbench.metrics.table import (
    BASE,
    CHANCE,
    MACRO,
    SHARED,
    Compared,
    Numbers,
    Place,
    Table,
    base_of,
    is_cell,
    is_slice,
    ordered_cells,
)
from monitorbench.metrics.trainings import spreads
from monitorbench.metrics.words import CORRECTED, is_told, word
from monitorbench.records import Split

_OF_POINTS = {Split.TEST: "rates", Split.CALIBRATION: "calibration"}
_COST = ("expected_cost", "expected_cost_ci")
_TREES = (
    *("monitors", "slices", "macro", "overall", "transfer", "effects", "chance", "prompts"),
    *("pareto", "cost_fronts"),
)
"""Keys that are made of the table anew."""


def nested(results: Results) -> dict[str, Any]:
    """Return `metrics.json`: what is no number as it is, and the numbers as trees by monitor and prompt.

    `monitors` has the cells; `slices` `task:<task>`, `with_thinking`, `without_thinking`, `source:<source>`
    and the strata `<category>/<task>:<stratum>`; `macro` the means over the `category/task` cells; `overall`
    the curves and the expected cost; `compared_trees` what is set against something else.
    """
    tree: dict[str, Any] = {k: of for k, of in results.items() if k not in ("table", "curves")}
    tree |= number_trees(results["table"], results["curves"]) | compared_trees(results)
    tree["pareto"] = rate_fronts(results["table"])
    tree["cost_fronts"] = cost_fronts(results["table"], results["usage"])
    tree["seeds"] = {
        name: {
            "adapters": [*by_seed.values()],
            "seeds": [*by_seed],
            "spread": spreads(results["table"], by_seed.values()),
        }
        for name, by_seed in results["seeds"].items()
    }
    for monitor, by_prompt in results.get("operating_points", {}).items():
        of_monitor = tree["operating_points"] = {**tree["operating_points"], monitor: {}}
        for prompt, point in by_prompt.items():
            test, calibration = (numbers_at(results, monitor, prompt, split) for split in _OF_POINTS)
            numbers = {"rates": as_json(test), "calibration": as_json(calibration) or None}
            of_monitor[monitor][prompt] = {**point, **numbers}
    return tree


def number_trees(table: Table, curves: Mapping[str, Mapping[str, Curves]]) -> dict[str, Any]:
    """Return the numbers of all monitors' own answers as `nested` has them."""
    trees: dict[str, Any] = {"monitors": {}, "slices": {}, "macro": {}, "overall": {}}
    for monitor, prompt in table.judged():
        parts = {name: as_json(numbers) for name, numbers in table.parts(monitor, prompt).items()}
        cost = {key: parts[OVERALL].pop(key) for key in _COST if key in parts[OVERALL]}
        of_prompt = {
            "monitors": {name: of for name, of in parts.items() if is_cell(name)},
            "slices": {name: of for name, of in parts.items() if is_slice(name)},
            "macro": parts.get(MACRO, {}),
            "overall": {**curves[monitor][prompt], **cost},
        }
        for key, tree in of_prompt.items():
            trees[key].setdefault(monitor, {})[prompt] = tree
    return trees


def read_trees(trees: Mapping[str, Any]) -> tuple[Table, dict[str, dict[str, Curves]]]:
    """Read what `number_trees` wrote."""
    table, curves = Table(), dict[str, dict[str, Curves]]()
    for monitor, by_prompt in trees["monitors"].items():
        for prompt, cells in by_prompt.items():
            macro, overall = (trees[key].get(monitor, {}).get(prompt, {}) for key in ("macro", "overall"))
            slices = trees["slices"].get(monitor, {}).get(prompt, {})
            for name, numbers in (cells | slices | ({MACRO: macro} if macro else {})).items():
                table.add(Place(monitor, prompt, name), from_json(numbers))
            table.add(Place(monitor, prompt), from_json(overall))
            prompt_curves = Curves(roc=overall.get("roc", []), reliability=overall.get("reliability", []))
            curves.setdefault(monitor, {})[prompt] = prompt_curves
    return table, curves


def compared_trees(results: Results) -> dict[str, Any]:
    """Return `transfer` (each adapter against its base), `effects` (each training), the words of `matrix`,
    `chance` (AUROC against .5) and `prompts` (several prompts over the same samples)."""
    table, effects = results["table"], effects_of(results)
    adapters = {name for of_training in results["adapters"].values() for name in of_training}
    transfer = {name: by_prompt for name, by_prompt in table.compared(BASE).items() if name in adapters}
    words = {
        name: {
            prompt: {cell: verdict_json(numbers) for cell, numbers in parts.items() if is_told(numbers)}
            for prompt, parts in by_prompt.items()
        }
        for name, by_prompt in effects.items()
    }
    monitors = dict.fromkeys(name for name, _ in table.judged())
    return {
        "transfer": _tree(transfer, difference_json),
        "effects": _tree(effects, difference_json),
        "matrix": {"words": words, **results["matrix"]},
        "chance": _tree(table.compared(CHANCE), as_json),
        "prompts": {name: of for name in monitors if (of := _prompts_tree(table, name))},
    }


def _tree(compared: Compared, write: Callable[[Numbers], dict[str, Any]]) -> dict[str, Any]:
    return {
        name: {
            prompt: {part: write(numbers) for part, numbers in parts.items()}
            for prompt, parts in by_prompt.items()
        }
        for name, by_prompt in compared.items()
    }


def difference_json(numbers: Numbers) -> dict[str, Any]:
    """Return what `metrics.transfer` knows of a comparison, without what is corrected over many."""
    further = (*CORRECTED, "auroc_spread")
    return as_json({name: number for name, number in numbers.items() if name not in further})


def verdict_json(numbers: Numbers) -> dict[str, Any]:
    """Return the word of a cell of the matrix and what it rests on; all None of another."""
    if not is_told(numbers):
        return dict.fromkeys(("word", *CORRECTED))
    return {"word": word(numbers), **as_json({name: numbers[name] for name in CORRECTED})}


def _prompts_tree(table: Table, monitor: str) -> dict[str, Any]:
    by_prompt = shared_numbers(table, monitor)
    if not by_prompt:
        return {}
    base = next(iter(by_prompt))
    tree: dict[str, Any] = {"n": by_prompt[base]["n"].value, "base": base, "spread": None}
    minus = table.prompts_apart(monitor, "auroc_difference")
    tree["differences"] = {prompt: difference_json(numbers) for prompt, _, numbers in minus}
    for highest, lowest, numbers in table.prompts_apart(monitor, "auroc_spread"):
        spread = as_json({"auroc_spread": numbers["auroc_spread"]})
        tree["spread"] = {
            "highest": highest,
            "lowest": lowest,
            **{name.replace("_spread", ""): value for name, value in spread.items()},
            **{name: spread_of(by_prompt, name) for name in ("miss_rate", "false_alarm_rate")},
        }
    return {**tree, "by_prompt": {prompt: as_json(numbers) for prompt, numbers in by_prompt.items()}}


def read_compared(table: Table, trees: Mapping[str, Any]) -> None:
    """Add what `compared_trees` wrote to a table."""
    words, sides = trees["matrix"]["words"], ((BASE, "transfer"), (BASE, "effects"), (CHANCE, "chance"))
    for against, tree in (*((side, trees[key]) for side, key in sides), (BASE, words)):
        for monitor, by_prompt in tree.items():
            for prompt, parts in by_prompt.items():
                for part, numbers in parts.items():
                    table.add(Place(monitor, prompt, part, against=against), from_json(numbers))
    for monitor, facts in trees["prompts"].items():
        for prompt, numbers in facts["by_prompt"].items():
            table.add(Place(monitor, prompt, SHARED), from_json(numbers))
        for prompt, numbers in facts["differences"].items():
            table.add(Place(monitor, prompt, SHARED, against=facts["base"]), from_json(numbers))
        if spread := facts["spread"]:
            place = Place(monitor, spread["highest"], SHARED, against=spread["lowest"])
            numbers = {"auroc_spread": spread["auroc"], "auroc_spread_ci": spread["auroc_ci"]}
            table.add(place, from_json(numbers))


def as_results(data: Mapping[str, Any]) -> Results:
    """Read a parsed `metrics.json`; raises ValueError where it is of another schema version."""
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema_version: got {version!r}, expected {SCHEMA_VERSION}; score the run again")
    table, curves = read_trees(data)
    read_compared(table, data)
    tree = {key: value for key, value in data.items() if key not in _TREES}
    tree["seeds"] = {
        name: dict(zip(of["seeds"], of["adapters"], strict=True)) for name, of in data["seeds"].items()
    }
    tree["matrix"] = {key: value for key, value in data["matrix"].items() if key != "words"}
    if points := data.get("operating_points"):
        tree["operating_points"] = {name: dict(by_prompt) for name, by_prompt in points.items()}
        for monitor, by_prompt in tree["operating_points"].items():
            for prompt, point in by_prompt.items():
                by_prompt[prompt] = {k: of for k, of in point.items() if k not in ("rates", "calibration")}
                for split, key in _OF_POINTS.items():
                    if numbers := point.get(key):
                        place = Place(monitor, prompt, OVERALL, point["name"], split.value)
                        table.add(place, from_json(numbers))
    return cast(Results, {**tree, "table": table, "curves": curves})


CsvRow = dict[str, str | int | float | None]


def monitor_rows(results: Results) -> list[CsvRow]:
    """`table.csv`: one row a monitor, prompt and cell, behind a cell one for each of its strata."""
    rows: list[CsvRow] = []
    for monitor, prompt in results["table"].in_order():
        parts = results["table"].parts(monitor, prompt)
        for cell in ordered_cells({name for name in parts if is_cell(name)}):
            for name in (
                cell,
                *(stratum for stratum in strata(results, prompt, cell) if stratum in parts),
            ):
                where = {"monitor": monitor, "prompt": prompt, "cell": name, **_of_cell(results, name)}
                numbers = {metric: of for metric, of in parts[name].items() if metric != "expected_cost"}
                rows.append({**where, **flat(as_json(numbers))})
    return rows


def _of_cell(results: Results, name: str) -> CsvRow:
    """The stratum that a cell's numbers are of, and which shortcut check marks it."""
    shortcuts = results["shortcuts"].get(name)
    return {
        "headline": results["headline"].get(name),
        "marked_by": shortcuts["marked_by"] if shortcuts else None,
    }


def transfer_rows(results: Results) -> list[CsvRow]:
    """`transfer.csv`: one row a training, prompt and cell, with `trained` and `held_out` as cells too.

    Behind a training of several seeds comes each of its adapters, which has no words.
    """
    effects, compared = effects_of(results), results["table"].compared(BASE)
    adapters = [adapter for of_training in results["adapters"].values() for adapter in of_training]
    several = {adapter: compared[adapter] for adapter in adapters if adapter not in effects}
    return [
        {
            "training": name,
            "base": base_of(name),
            "trained_on": ";".join(results["trained_on"].get(results["adapters"].get(name, [name])[0], [])),
            "prompt": prompt,
            "cell": cell,
            **flat(difference_json(by_cell[cell])),
            **flat(verdict_json(by_cell[cell])),
        }
        for name, by_prompt in {**effects, **several}.items()
        for prompt, by_cell in by_prompt.items()
        for cell in ordered_cells(set(by_cell))
    ]


def to_csv(rows: Sequence[CsvRow]) -> str:
    """Rows as CSV text with a header; empty without rows."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def flat(numbers: Mapping[str, object]) -> CsvRow:
    """Put numbers into columns of their keys, each interval into `<key>_low` and `<key>_high`."""
    row: CsvRow = {}
    for key, value in numbers.items():
        if key.endswith(("_ci", "_bounds")):
            low, high = value if isinstance(value, list | tuple) else (None, None)
            row |= {f"{key}_low": low, f"{key}_high": high}
        else:
            assert value is None or isinstance(value, str | int | float)
            row[key] = value
    return row
