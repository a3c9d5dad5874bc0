"""What becomes of a fault: nothing, a refusal in one line, or something that nobody would notice."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Ending = Literal["undisturbed", "refused", "silent"]


class Outcome(NamedTuple):
    """One fault: what it was done to, how to do it again, and how that ended."""

    kind: str
    case: str
    """Names the fault; with the seed, `--only … --case …` does it again."""
    ending: Ending
    """`undisturbed`: the results are those without the fault. `refused`: one line, or an answer that is
    unscored with its reason or still pending. `silent`: everything else, a traceback included."""
    why: str = ""


WIDTH = 80
_COLUMNS = ("tried", "undisturbed", "refused", "silent")


def table(outcomes: Sequence[Outcome]) -> str:
    """Tried, as undisturbed, refused in one line and silent, by kind, in at most 80 columns."""
    found: dict[str, Counter[str]] = {}
    for one in outcomes:
        found.setdefault(one.kind, Counter()).update((one.ending, "tried"))
    rows = [("", *_COLUMNS)] + [
        (kind, *(str(counts[name]) for name in _COLUMNS)) for kind, counts in found.items()
    ]
    total = sum(found.values(), Counter[str]())
    rows.append(("all", *(str(total[name]) for name in _COLUMNS)))
    return "\n".join(f"{row[0]:<32}" + "".join(f"{value:>12}" for value in row[1:]) for row in rows)


def write(path: Path, seed: int, outcomes: Sequence[Outcome]) -> None:
    """Every fault with its outcome, as JSON."""
    details = {"seed": seed, "outcomes": [one._asdict() for one in outcomes]}
    path.write_text(json.dumps(details, indent=1) + "\n", encoding="utf-8")
