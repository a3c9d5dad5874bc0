"""Outcomes with chosen counts, for tests."""

from collections.abc import Sequence

from monitorbench.intervention.outcomes import BASELINE, Outcome


def run(
    task: str, seed: int, condition: str, success: bool, agent: str = "agent", reason: str = ""
) -> Outcome:
    return Outcome(task, seed, agent, condition, success, int(condition != BASELINE), 3, 20, reason)


def outcomes(cells: Sequence[str], condition: str = "rollback", agent: str = "agent") -> list[Outcome]:
    """One task for each string, one seed for each of its letters: `["A", "CC", …]`."""
    found = []
    for i, letters in enumerate(cells):
        for seed, letter in enumerate(letters):
            found.append(run(f"t{i:04}", seed, BASELINE, letter in "BD", agent))
            found.append(run(f"t{i:04}", seed, condition, letter in "CD", agent))
    return found


def counted(A: int = 0, B: int = 0, C: int = 0, D: int = 0) -> list[str]:
    """So many tasks of one seed in each cell."""
    return [*"A" * A, *"B" * B, *"C" * C, *"D" * D]


def joined(*conditions: list[Outcome]) -> list[Outcome]:
    """Several conditions over one baseline, which is the first one's."""
    first, *others = conditions
    return first + [run for more in others for run in more if run.condition != BASELINE]
