import io

import pytest
from fake_outcomes import counted, joined, outcomes
from rich.console import Console

from monitorbench.config.pilot import PilotStatistics
from monitorbench.config.terminal import WIDTH
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.report.pilot.printed import print_decision


def printed(found: list, settings: PilotStatistics, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_decision(Console(file=stream, width=WIDTH), analyse(found, settings))
    stream.seek(0)
    return stream.read()


SEVERAL = joined(
    outcomes(counted(A=70, B=3, C=13, D=14), "rollback_uncalibrated"),
    outcomes(counted(A=60, B=1, C=23, D=16), "[red]append"),
    outcomes(counted(A=83, D=17), "oracle"),
)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_it_fits_a_terminal(encoding: str) -> None:
    """Broken lines are read in the wrong column; markup in a name must not colour or swallow it."""
    text = printed(SEVERAL, PilotStatistics(p_target=0.3, draws=1000), encoding)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "rollback_uncalibrated" in text
    assert "[red]append" in text
    assert "oracle*" in text
    assert "where 30% fail without it" in text


def test_the_last_word_is_the_decision() -> None:
    """Who reads one line has to read the right one."""
    last = printed(SEVERAL, PilotStatistics(draws=1000)).strip().split("\n\n")[-1]
    assert " ".join(last.split()).startswith(
        "Intervene: [red]append (the best of 2 conditions tried) raises the success of agent by 22.0"
    )
    nothing = printed(outcomes(counted(A=30, D=20)), PilotStatistics(draws=1000))
    assert "Inconclusive: rollback changes the success of agent by 0.0" in nothing
    assert "No number of further tasks can be given." in " ".join(nothing.split())
