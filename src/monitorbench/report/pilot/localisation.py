"""Steps at which a critic fires: `localisation.json` for programs, lines on the terminal for people."""

from pathlib import Path
from typing import Any

from monitorbench.intervention.recorded.localisation import Localisation, Located, RunShare
from monitorbench.runs.files import write_json

LOCALISATION = "localisation.json"


def write_localisation(folder: Path, localisation: Localisation) -> None:
    """Write `localisation.json`.

    `tables.<subset>.n` counts runs; `tables.<subset>.strategies.<name>.<share>` is in [0, 1] (`beyond_random`
    in [-1, 1]), `<share>_ci` its interval, or null where there can be none.
    """
    write_json(folder / LOCALISATION, as_json(localisation))


def as_json(localisation: Localisation) -> dict[str, Any]:
    """Return the content of `localisation.json`."""
    return {
        "n_unreachable": localisation.n_unreachable,
        "step_coverage": localisation.step_coverage,
        "tables": {
            subset: {
                "n": table.n,
                "strategies": {name: _fields(row) for name, row in table.strategies.items()},
            }
            for subset, table in localisation.tables.items()
        },
    }


def as_lines(localisation: Localisation) -> list[str]:
    """Return lines of at most 80 columns: how often each strategy fires at the marked step."""
    lines = []
    for subset, table in localisation.tables.items():
        lines += [f"{subset}, {table.n} runs: first fires at the marked step, within one of it (%)"]
        for name, row in table.strategies.items():
            lines.append(f"  {name:<24}{_percent(row.exact):<26}{_percent(row.within_one)}")
    return lines


def _fields(row: Located) -> dict[str, Any]:
    shares: dict[str, RunShare] = row._asdict()
    values = {name: share.value for name, share in shares.items()}
    bounds = {f"{of}_ci": list(share.interval) if share.interval else None for of, share in shares.items()}
    return {**values, **bounds}


def _percent(share: RunShare) -> str:
    value = f"{100 * share.value:.1f}"
    if share.interval is None:
        return value
    return f"{value} ({100 * share.interval.low:.1f} to {100 * share.interval.high:.1f})"
