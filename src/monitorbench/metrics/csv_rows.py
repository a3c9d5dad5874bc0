"""`table.csv` and `transfer.csv`: every number and every bound in a column of its own, unrounded.

What is undefined is an empty field.
"""

import csv
import io
from collections.abc import Mapping, Sequence

from monitorbench.metrics.marks import strata
from monitorbench.metrics.metrics_json import difference_json, verdict_json
from monitorbench.metrics.registry import as_json
from monitorbench.metrics.results import Results, effects_of
from monitorbench.metrics.table import BASE, base_of, is_cell, ordered_cells

Value = str | int | float | None
Row = dict[str, Value]


def monitor_rows(results: Results) -> list[Row]:
    """`table.csv`: one row a monitor, prompt and cell, behind a cell one for each of its strata."""
    rows: list[Row] = []
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


def _of_cell(results: Results, name: str) -> Row:
    """The stratum that a cell's numbers are of, and which shortcut check marks it."""
    shortcuts = results["shortcuts"].get(name)
    return {
        "headline": results["headline"].get(name),
        "marked_by": shortcuts["marked_by"] if shortcuts else None,
    }


def transfer_rows(results: Results) -> list[Row]:
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


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV text with a header; empty without rows."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def flat(numbers: Mapping[str, object]) -> Row:
    """Put numbers into columns of their keys, each interval into `<key>_low` and `<key>_high`."""
    row: Row = {}
    for key, value in numbers.items():
        if key.endswith(("_ci", "_bounds")):
            low, high = value if isinstance(value, list | tuple) else (None, None)
            row |= {f"{key}_low": low, f"{key}_high": high}
        else:
            assert value is None or isinstance(value, str | int | float)
            row[key] = value
    return row
