"""The page of a pilot, one HTML file that needs nothing beside it, and the report stage that writes it.

Promises: nothing is loaded and no script runs; tasks, names, and all that agents and worlds said are
escaped, unseen characters in them named; the same run gives the same bytes.
"""

from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.intervention.statistics.decision_file import DECISION
from monitorbench.intervention.statistics.wording import percent, remarks_on, remarks_on_all
from monitorbench.intervention.transcripts import EPISODES
from monitorbench.report.pilot import figures, view
from monitorbench.report.pilot.decision_table import show_decision
from monitorbench.report.pilot.flips import flips
from monitorbench.report.pilot.localisation import LOCALISATION
from monitorbench.report.pilot.reading import PilotRun, read_pilot
from monitorbench.report.template import facts, policy, templates
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import write_atomically


def render_pilot(run: PilotRun, manifest: Mapping[str, object]) -> str:
    """The page for a pilot and the manifest of its run."""
    decision, names = run.decision, view.names(run.decision)
    results = [(condition, names[condition.agent, condition.condition]) for condition in decision.conditions]
    counts = view.steps_intervened_at(run)
    flipped = [
        (names[condition.result.agent, condition.result.condition], flips(condition, run.transcripts))
        for condition in run.compared
    ]
    return (
        templates()
        .get_template("pilot.html.j2")
        .render(
            policy=policy(),
            name=run.name,
            decision=decision,
            what_was_run=view.what_was_run(decision),
            remarks=[*remarks_on(decision), *remarks_on_all(decision)],
            other_remarks=[
                remark
                for condition in decision.conditions
                if (condition.agent, condition.condition) != (decision.agent, decision.condition)
                for remark in remarks_on(condition)
            ],
            confidence=percent(decision.settings.interval_confidence),
            squares=[view.square(condition, name) for condition, name in results],
            broken=view.broken(run.outcomes),
            rows=[view.row(condition, name) for condition, name in results],
            undefined=[remark for condition, name in results for remark in view.undefined(condition, name)],
            # Safe to put in as they are: drawn here, every name in them an outline or escaped.
            rates=_drawn(figures.rates(decision, names)),
            effects=_drawn(figures.effects(decision, names)),
            when=_drawn(figures.when(counts, names, _last_step(run))),
            none_made=[names[key] for key in names if key not in counts],
            per_run=view.per_run(run, names),
            without_transcripts=run.transcripts.missing,
            flipped=flipped,
            n_disruptions=sum(len(condition.disruptions) for _, condition in flipped),
            n_recoveries=sum(len(condition.recoveries) for _, condition in flipped),
            made=[("run", run.name), *facts(manifest)],
        )
    )


def _drawn(svg: str | None) -> Markup | None:
    return Markup(svg) if svg else None


def _last_step(run: PilotRun) -> int:
    """The last step that any run reached: the right end of the histogram."""
    return max(
        (step.step for episode in run.transcripts.by_run.values() for step in episode.steps), default=0
    )


def is_of_a_pilot(directory: Path) -> bool:
    """Whether `eval/pilot.py` wrote this run directory."""
    return any((directory / name).is_file() for name in (DECISION, EPISODES, LOCALISATION))


def report_pilot(study: Study) -> Path:
    """Write `report.html` beside the decision in `study.run`, and print it as `eval/pilot.py` does.

    Raises `UserError` where the run has no report, or its files can't be read or don't belong together.
    """
    directory = study.required_run()
    manifest = read_finished(directory)
    if not (directory / DECISION).is_file():
        raise UserError(f"{directory}: {_without_decision(directory)}")
    run = read_pilot(directory, manifest, study.paths.runs)
    write_atomically(directory / "report.html", render_pilot(run, manifest))
    record_files(directory, "report.html")
    show_decision(run.decision)
    return directory


def _without_decision(directory: Path) -> str:
    """Say why there is no report of a run, and what to do."""
    if (directory / LOCALISATION).is_file():
        return "a localisation has no report; localisation.json has all shares, eval/pilot.py prints them"
    return "these are the runs of a pilot; expected run=runs/pilot/NAME-HASH, which eval/pilot.py printed"
