"""The endings of a fault: nothing, a refusal in one line, or something that nobody would notice."""

from collections import Counter
from collections.abc import Iterable
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

    @property
    def campaign(self) -> str:
        """The campaign that the fault is of."""
        kind = self.kind.split()[0]
        return {"kill": "kills", "disk": "kills", "flip": "flips"}.get(kind, kind)


def counts(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Count the faults that were tried, and how they ended, by kind and in all."""
    found: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        for kind in (outcome.kind, "all"):
            found.setdefault(kind, Counter()).update(("tried", outcome.ending))
    found["all"] = found.pop("all", Counter())  # last
    names = ("tried", "undisturbed", "refused", "silent")
    return {kind: {name: counted[name] for name in names} for kind, counted in found.items()}
