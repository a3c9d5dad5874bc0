"""`eval/pilot.py`: outcomes from a file, from recorded runs or from a live pilot, and the decision on them.

Writes `runs/pilot/<name>-<hash>/`: `decision.json`, `pairs.csv` and the `outcomes.jsonl` that they were made
from. The runs of a live pilot lie in `runs/episodes/`, so that other statistics on the same runs cost
nothing. Recorded runs with marked mistakes give `localisation.json` in `runs/localisation/` instead.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from monitorbench.config.base import Config, ConfigError
from monitorbench.config.ending import printable
from monitorbench.config.pilot import WhoAndWhen
from monitorbench.config.study import Paths, Study
from monitorbench.config.terminal import opened
from monitorbench.interop.imports.readers.open import stem_of
from monitorbench.intervention.outcomes import MappedRuns, Outcome, read_mapped, read_outcomes, write_outcomes
from monitorbench.intervention.statistics.analysis import analyse, at_its_error
from monitorbench.intervention.statistics.decision_file import write_decision
from monitorbench.report.pilot.printed import print_decision
from monitorbench.runs.directory import RunDirectory, compared_file
from monitorbench.runs.files import content_hash
from monitorbench.runs.run_folders import run_name


class _Found(NamedTuple):
    """Outcomes, what the run is called after them, where they are from (for the manifest), and remarks."""

    outcomes: list[Outcome]
    name: str
    origin: dict[str, Any]
    remarks: tuple[str, ...] = ()


def run_pilot(study: Study) -> Path:
    """Find or make the outcomes, decide, print the decision; returns the run directory.

    Raises `ConfigError` where both `outcomes` and `recorded` are given, and `UserError` for what its parts
    can't read, run or match.
    """
    if study.outcomes is not None and study.recorded is not None:
        raise ConfigError(
            f"outcomes={study.outcomes}: recorded={study.recorded.name} is given as well; expected one"
        )
    if isinstance(study.recorded, WhoAndWhen):
        return _locate(study, study.recorded, study.paths)
    source = _outcomes(study)
    statistics = at_its_error(source.outcomes, study.pilot.statistics, study.paths.runs / "pilot")
    identity = {
        "outcomes": content_hash([list(outcome) for outcome in source.outcomes]),
        "statistics": statistics.model_dump(mode="json"),
    }
    run = RunDirectory(study.paths.runs / "pilot", source.name, identity)
    decision = analyse(source.outcomes, statistics).model_copy(update={"on_outcomes": source.remarks})
    with run.recording(study) as results:
        write_outcomes(run.path / "outcomes.jsonl", source.outcomes)
        write_decision(run.path, decision)
        results |= {"decision": decision.decision, "sentence": decision.sentence}
        results |= {"n_runs": len(source.outcomes), **source.origin}
    print_decision(opened(), decision)
    return run.path


def _locate(config: Config, recorded: WhoAndWhen, paths: Paths) -> Path:
    from monitorbench.intervention.recorded.localisation import locate
    from monitorbench.report.pilot.printed import as_lines, write_localisation

    located = locate(recorded, paths)
    settings = recorded.model_dump(mode="json", exclude={"scores"})
    scores = sha256(recorded.scores.read_bytes()).hexdigest() if recorded.scores else ""
    run = RunDirectory(paths.runs / "localisation", recorded.name, {"recorded": settings, "scores": scores})
    with run.recording(config) as results:
        write_localisation(run.path, located)
        results["step_coverage"] = located.step_coverage
    print(printable("\n".join(as_lines(located))))
    return run.path


def _outcomes(study: Study) -> _Found:
    if study.outcomes is not None:
        name = run_name(stem_of(study.outcomes))
        file, columns = compared_file(study.outcomes), study.pilot.columns
        read = MappedRuns(read_outcomes(file), ()) if columns is None else read_mapped(file, columns)
        return _Found(read.outcomes, name, {"origin": "file", "file": file.name}, read.remarks)
    if study.recorded is not None:
        from monitorbench.intervention.recorded.archives import read_recorded

        name = study.recorded.name
        return _Found(read_recorded(study.recorded, study.paths), name, {"origin": "recorded", "set": name})
    from monitorbench.intervention.critic import critic_identity
    from monitorbench.intervention.loop.live import run_live

    live = run_live(study)
    name = live.directory.name.rpartition("-")[0]
    critic = critic_identity(study.monitor, study.engine, study.pilot.prompt)
    origin = {
        "origin": "live",
        "episodes": str(live.directory),
        "environment": study.environment.name,
        "monitor": study.monitor.name,
        "model": {key: critic.get(key, "") for key in ("weights", "adapter")},
    }
    return _Found(live.outcomes, name, origin)
