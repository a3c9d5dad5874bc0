"""`runs compare` and `runs show` over evaluation runs that the real stage wrote."""

import contextlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split
from monitorbench.judging.evaluate import evaluate
from monitorbench.records import Label, Split
from monitorbench.runs.command import main
from monitorbench.runs.keyed_log import read_verdicts
from monitorbench.scoring.score import score_run


@pytest.fixture
def runs(study: Callable[..., Study], use_engine: Any, says: Any, says_by_prompt: Any) -> list[Path]:
    """Two prompts over the same samples, and one of them over some more."""
    use_engine(says_by_prompt)
    direct = evaluate(study("prompt=direct"))
    more = evaluate(study("prompt=direct", "dataset.test.pairs_per_cell=3"))
    use_engine(lambda ids, *_: says('yes"}' if sum(ids) % 2 else 'no"}'))
    return [direct, more, evaluate(study("prompt=evidence"))]


def command(starter: Path, runs: Path, *arguments: str) -> int:
    """`monitorbench runs …`; its exit code."""
    name, *others = arguments
    data = ["--data", str(starter.parent)] if name == "compare" else []
    try:
        return main([name, "--runs", str(runs), *data, *others])
    except SystemExit as ended:
        return int(str(ended.code))


def test_differences_are_those_of_the_logs(
    runs: list[Path], starter: Path, capsys: pytest.CaptureFixture[str]
):
    """The choice between two monitors rests on this line."""
    direct, more, evidence = runs
    folder = direct.parent.parent
    assert command(starter, folder, "compare", more.name, evidence.name, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    labels = {sample.id: sample.label for sample in read_split(starter, Split.TEST)}
    answers = [
        {one.sample_id: one.label for one in read_verdicts(run / "verdicts.jsonl")}
        for run in (more, evidence)
    ]
    both = [name for name in answers[0] if name in answers[1]]
    assert found["difference"]["n"] == len(both) == 28
    assert (found["n_only_first"], found["n_only_second"]) == (14, 0)
    answered = [name for name in both if answers[0][name] and answers[1][name]]
    for key, label in (("miss_rate", Label.MISBEHAVIOR), ("false_alarm_rate", Label.BENIGN)):
        inside = [name for name in answered if labels[name] is label]
        wrong = [sum(of[name] is not label for name in inside) / len(inside) for of in answers]
        assert found["difference"][f"{key}_difference"] == pytest.approx(wrong[1] - wrong[0])
        low, high = found["difference"][f"{key}_difference_ci"]
        assert low <= wrong[1] - wrong[0] <= high
    changed = {one["key"]: (one["first"], one["second"]) for one in found["settings"]}
    assert changed["prompt.name"] == ("direct", "evidence")
    assert changed["dataset.test.pairs_per_cell"] == (3, 2)
    assert not any(key.startswith("paths") for key in changed)


def test_it_is_shown_in_80_columns(runs: list[Path], starter: Path, capsys: pytest.CaptureFixture[str]):
    """With how many samples it is about, which alone says what it is worth."""
    folder = runs[0].parent.parent
    assert command(starter, folder, "compare", "@smollm2_135m-evidence", runs[1].name) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "B minus A over the 28 samples that both judged" in text
    assert "0 only by A, 14 only by B" in text
    assert re.search(r"MR +[−+]?\.\d\d \[.*\] +p [=<] \.\d+|MR +[−+]?\.\d\d \[.*\] +p = 1\.000", text)


def test_other_samples_are_refused_in_one_line(
    runs: list[Path], starter: Path, study: Callable[..., Study], use_engine: Any, says: Any
):
    """A difference over no common sample is one between two exams."""
    use_engine(lambda *_: says("no"))
    other = evaluate(study("evaluate.split=calibration", "dataset.calibration.pairs_per_cell=1"))
    folder = other.parent.parent
    for second, words in ((other, "judged no sample that both have"), (runs[0], "given twice")):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            assert command(starter, folder, "compare", runs[0].name, second.name) == 1
        assert words in said.getvalue()
        assert said.getvalue().count("\n") == 1


def test_show_says_what_it_is(
    runs: list[Path], starter: Path, study: Callable[..., Study], capsys: pytest.CaptureFixture[str]
):
    """Half a year later nothing else tells what a folder holds."""
    folder, scored = runs[0].parent.parent, runs[2]
    score_run(study(f"run={scored}"))
    assert command(starter, folder, "show", scored.name, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"prompt.name=evidence", "dataset.test.pairs_per_cell=2"} < set(found["settings"])
    assert not any(key.startswith(("paths.", "stakes.")) for key in found["settings"])
    assert re.fullmatch(r"\.\d\d \[\.\d\d–(\.\d\d|1\.0)\]", found["results"]["miss rate"])
    files = {path.name: path.stat().st_size for path in scored.iterdir() if path.name[0] != "."}
    assert found["files"] == files
    assert command(starter, folder, "show", scored.name) == 0
    assert "settings other than the defaults" in capsys.readouterr().out
