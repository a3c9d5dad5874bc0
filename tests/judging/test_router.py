"""A router's monitor: each sample by the adapter of its category. Real engine, tiny model."""

import json
from pathlib import Path

import pytest
from tuned_models import Studies, verdicts

from monitorbench.config.base import ConfigError
from monitorbench.corpus.store import read_split
from monitorbench.judging.adapters import evaluate_each
from monitorbench.judging.evaluate import evaluate
from monitorbench.judging.router import predicted_category
from monitorbench.records import Sample, Split
from monitorbench.runs.directory import read_manifest
from monitorbench.scoring import score

ALL = "dataset.test.subset=[all]"


def routed(adapters: list[Path], *more: str) -> tuple[str, ...]:
    """Two of the three categories have an adapter."""
    given = f"safety_permission: {adapters[0]}, sycophancy_bias: {adapters[1]}"
    return (ALL, "monitor.router={adapters: {" + given + "}}", *more)


def test_each_sample_is_judged_by_the_adapter_of_its_category(
    asked: Studies, adapters: list[Path], loads: list[Path], starter: Path
):
    """If it failed: a specialist would judge what it was not trained for, or the table name another judge."""
    run = evaluate(asked("routed", *routed(adapters)))
    assert len(loads) == 1, "one engine for all adapters"
    several = asked("apart", ALL, f"adapters=[{adapters[0]},{adapters[1]}]")
    evaluate_each(several)
    apart = {
        read_manifest(one.parent)["identity"]["judge"]["adapter"]: verdicts(one.parent)
        for one in (several.paths.runs / "evaluate").glob("*/manifest.json")
    }
    hashes = read_manifest(run)["identity"]["judge"]["router"]["adapters"]
    category = {sample.id: sample.category for sample in samples_of(starter)}
    found = verdicts(run)
    assert len(found) == read_manifest(run)["results"]["n"]
    for key, verdict in found.items():
        _, label, alone, answer = apart[hashes.get(category[verdict[0]], "")][key]
        assert verdict[1:] == (label, pytest.approx(alone, abs=1e-5), answer), "as in that adapter's own run"
    counts = read_manifest(run)["results"]["routed"]
    assert all(list(row) == [own] for own, row in counts.items())


def test_a_predicted_category_is_part_of_what_is_judged(asked: Studies, adapters: list[Path], starter: Path):
    """If it failed: a deployment that has to guess would be promised the result of one that knows."""
    by_own = evaluate(asked("routed", *routed(adapters)))
    guessed = evaluate(asked("routed", *routed(adapters, "+monitor.router.by=predicted")))
    assert guessed != by_own, "another judge"
    identity = read_manifest(guessed)["identity"]["judge"]["router"]
    assert identity["fitted_on"].startswith(starter.name)
    counts = read_manifest(guessed)["results"]["routed"]
    n = sum(sum(row.values()) for row in counts.values())
    right = sum(row.get(own, 0) for own, row in counts.items())
    assert right / n > 1 / 3, "better than chance on real samples"
    with pytest.raises(ConfigError, match="holds no two categories"):
        predicted_category([s for s in samples_of(starter) if s.category == "sycophancy_bias"], "x")


def test_it_is_compared_with_the_others_in_one_table(asked: Studies, adapters: list[Path]):
    """If it failed: whether a router beats one adapter of everything could not be read off anywhere."""
    runs = [
        evaluate(asked("x", *given))
        for given in ([ALL], [ALL, f"monitor.adapter={adapters[0]}"], list(routed(adapters)))
    ]
    study = asked("x", ALL)
    chosen = study.transfer.model_copy(update={"runs": tuple(runs)})
    draws = study.score.model_copy(update={"resamples": 100})
    directory = score.transfer(study.model_copy(update={"transfer": chosen, "score": draws}))
    table = json.loads((directory / "metrics.json").read_text())["monitors"]
    assert set(table) >= {"smollm2_135m", f"smollm2_135m+{adapters[0].name}", "smollm2_135m+router"}


def test_what_cant_be_routed_is_one_line(asked: Studies, adapters: list[Path]):
    """If it failed: an endpoint's base would be reported as a router."""
    router = routed(adapters)[1]
    endpoint = ("engine=openai", "engine.base_url=http://127.0.0.1:9/v1", "engine.model=x")
    with pytest.raises(ConfigError, match=r"monitor\.router: engine=openai has no adapters of ours"):
        evaluate(asked("x", router, *endpoint))
    with pytest.raises(ValueError, match="adapter and router"):
        asked("x", router, f"monitor.adapter={adapters[0]}")
    with pytest.raises(ConfigError, match="a router takes the place of adapters"):
        evaluate_each(asked("x", router, f"adapters=[{adapters[0]}]"))


def samples_of(starter: Path) -> list[Sample]:
    return read_split(starter, Split.TEST)
