"""Recommend a monitor: write `recommendation.json` to `runs/recommend/<dataset>-<hash>/`.

The stage starts from scored runs; no model is run. The same settings and runs find the same directory.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.metrics.choice import FILE, SCHEMA_VERSION, PilotSaid
from monitorbench.runs.directory import RunDirectory, kind_of, read_checked, read_finished
from monitorbench.runs.files import content_hash, write_json
from monitorbench.runs.run_folders import dataset_name
from monitorbench.scoring.recommendation.candidates import CandidateRuns, pairs_of
from monitorbench.scoring.recommendation.decide import recommended
from monitorbench.scoring.recommendation.deployment import deployment_of
from monitorbench.scoring.recommendation.stressed import stressed

_DECISION = "decision.json"


def recommendation_run(study: Study) -> Path:
    """Write the recommendation among `study.recommend.runs`; returns the run directory.

    Raises what `deployment_of` and `pairs_of` raise, `UserError` where `recommend.pilot` is no pilot.
    """
    deployment_of(study.stakes, study.recommend, study.calibrate)  # before anything is read
    pairs = pairs_of(study.recommend.runs, study.paths.data, study.score.min_coverage)
    deployment = deployment_of(study.stakes, study.recommend, study.calibrate, len(pairs))
    data = pairs[0].test.data
    pilot = _pilot(study.recommend.pilot, pairs)
    of_stress = stressed(study.paths.runs, pairs)
    settings = study.recommend.model_dump(mode="json", exclude={"runs", "pilot"})
    identity: dict[str, Any] = {
        "runs": sorted(content_hash([e.id, e.monitor, e.prompt]) for pair in pairs for e in pair),
        "recommend": settings,
        "stakes": study.stakes.model_dump(),
        "calibrate": study.calibrate.model_dump(mode="json"),
        "seed": study.seed,
        "pilot": pilot,
    }
    identity["recommendation"] = SCHEMA_VERSION
    identity |= (
        {"stress": sorted(content_hash(stress.facts) for stress in of_stress.values())} if of_stress else {}
    )
    run = RunDirectory(study.paths.runs / "recommend", dataset_name(data.name), identity)
    if not run.done:
        with run.recording(study) as results:
            recommendation = recommended(study, pairs, pilot, of_stress, deployment)
            write_json(run.path / FILE, recommendation)
            results |= {
                "data": data.name,
                "runs": [str(e.directory) for pair in pairs for e in pair],
                "decision": recommendation["decision"],
                "monitor": recommendation["monitor"],
                "prompt": recommendation["prompt"],
                "sentence": recommendation["sentence"],
            }
    return run.path


def _pilot(directory: Path | None, pairs: Sequence[CandidateRuns]) -> PilotSaid | None:
    """Read the decision of a finished pilot, and which of the monitors it was a pilot of.

    Raises `UserError` where the directory is no pilot's.
    """
    if directory is None:
        return None
    if _DECISION not in read_finished(directory).get("files", {}):
        raise UserError(
            f"recommend.pilot={directory}: {kind_of(directory)} without {_DECISION}; expected a run of "
            "`monitorbench pilot`"
        )
    decision, results = read_checked(directory, _DECISION), read_finished(directory)["results"]
    critic = results.get("monitor", "")
    models = {pair.monitor: read_finished(pair.test.directory)["identity"]["judge"] for pair in pairs}
    is_same = critic in models and results.get("model") == {
        key: models[critic].get(key, "") for key in ("weights", "adapter")
    }
    tested = pairs[0].test
    sources = {name for name in tested.judged.source_names if name}
    return PilotSaid(
        run=directory.resolve().name,
        monitor=critic if is_same else "",
        critic=critic,
        environment=results.get("environment", ""),
        is_of_data=results.get("environment") == dataset_name(tested.data.name)
        or sources == {results.get("environment")},
        decision=decision["decision"],
        agent=decision["agent"],
        condition=decision["condition"],
        sentence=decision["sentence"],
    )
