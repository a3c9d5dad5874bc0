"""Two evaluation runs from one pass: the same runs that judging with each alone gives."""

from pathlib import Path
from typing import Any

import pytest
from pair_heads import fitted_heads
from sealed import seal
from small_models import planted_samples
from studies import study

from monitorbench.config.base import ConfigError
from monitorbench.corpus.store import write_split
from monitorbench.judging import adapters
from monitorbench.judging import evaluate as evaluating
from monitorbench.judging import probe as pair_evaluating
from monitorbench.judging import states as states_of
from monitorbench.judging.probe import HeadJudge
from monitorbench.records import Split, Verdict
from monitorbench.runs.keyed_log import read_verdicts

N = 8


@pytest.fixture
def asked(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Studies below a root on a tiny model with a head at the mean over the response."""
    data = tmp_path / "data" / "planted-0"
    write_split(data, Split.TEST, planted_samples(N // 2, 3))
    seal(data)
    for module in (evaluating, pair_evaluating):
        monkeypatch.setattr(module, "ensure", lambda study, splits: data)

    def made(root: str, *overrides: str) -> Any:
        paths = [f"paths.{name}={tmp_path / root / name}" for name in ("runs", "models")]
        exact = ("engine.dtype=float32", "engine.device=cpu", "engine.batch_size=4")
        return study(*paths, *exact, f"monitor.path={tiny}", *overrides, primary="evaluate")

    heads = fitted_heads(made("fit"), tiny, 1, planted_samples(8, 1), tmp_path / "heads")
    return made, heads["mean"]


def verdicts(run: Path) -> dict[str, Any]:
    return {one.key: one for one in read_verdicts(run / "verdicts.jsonl")}


def same(ours: Path, theirs: Path) -> None:
    """Two runs have one name and the same verdicts, but for the rounding of a padded batch."""
    assert ours.name == theirs.name
    mine, other = verdicts(ours), verdicts(theirs)
    assert mine.keys() == other.keys()
    assert len(mine) == N
    for key, verdict in mine.items():
        expected = other[key]
        assert verdict.score == pytest.approx(expected.score, abs=1e-4)
        assert (verdict.label, verdict.sample_id, verdict.prompt_tokens, verdict.finish_reason) == (
            expected.label,
            expected.sample_id,
            expected.prompt_tokens,
            expected.finish_reason,
        )


def test_both_runs_are_those_of_each_alone(
    asked: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """If it failed: a cascade of the pair would not be one of its two judges."""
    made, head = asked
    model_alone = adapters.evaluate_each(made("alone"))
    probe_alone = adapters.evaluate_each(made("alone", f"monitor.head={head}"))

    def load(*_: Any) -> None:
        raise AssertionError("the states were extracted in a pass of their own")

    monkeypatch.setattr(states_of, "HiddenStates", load)
    capsys.readouterr()
    model = adapters.evaluate_each(made("both", f"monitor.head_beside={head}"))
    probe = Path(capsys.readouterr().out.strip())
    same(model, model_alone)
    same(probe, probe_alone)
    # Found again by either's own command.
    assert adapters.evaluate_each(made("both")) == model
    assert adapters.evaluate_each(made("both", f"monitor.head={head}")) == probe
    assert adapters.evaluate_each(made("both", f"monitor.head_beside={head}")) == model


@pytest.mark.slow
def test_interrupted_it_goes_on(asked: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    """If it failed: what was judged before a kill would be paid again, or missing from one of the runs."""
    made, head = asked
    real, n_read = HeadJudge.on_states, 0

    def interrupted(*given: Any) -> Verdict:
        nonlocal n_read
        if n_read == 5:
            raise KeyboardInterrupt
        n_read += 1
        return real(*given)

    monkeypatch.setattr(HeadJudge, "on_states", interrupted)
    with pytest.raises(KeyboardInterrupt):
        adapters.evaluate_each(made("cut", f"monitor.head_beside={head}"))
    monkeypatch.setattr(HeadJudge, "on_states", real)
    capsys.readouterr()
    model = adapters.evaluate_each(made("cut", f"monitor.head_beside={head}"))
    probe = Path(capsys.readouterr().out.strip())
    same(model, adapters.evaluate_each(made("alone")))
    same(probe, adapters.evaluate_each(made("alone", f"monitor.head={head}")))


def test_adapters_are_refused(asked: Any, tmp_path: Path):
    """If it failed: the head would read states that it was not fitted on."""
    made, head = asked
    with pytest.raises(ConfigError, match="expected no adapters"):
        adapters.evaluate_each(made("x", f"monitor.head_beside={head}", f"adapters=[{tmp_path}]"))
