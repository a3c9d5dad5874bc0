"""What each addition of docs/extending.md does in a copy of the project that it was applied to.

Run as a script, `additions.py COPY TINY_MODEL SCRATCH`, with the copy's `src` and our tests on the path; the
last line is JSON: by part, empty where all is well, else the traceback.
"""

import json
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import studies
from small_models import planted_samples
from small_runs import curve, fp32, plant, settings
from studies import study

import monitorbench

COPY, TINY, SCRATCH = map(Path, sys.argv[1:4])
PATHS = [f"paths.{name}={SCRATCH / name}" for name in ("data", "runs", "models")]


def judged(*overrides: str) -> Path:
    """The run directory of an evaluation over some planted samples, read from a team's own file."""
    from monitorbench.judging.evaluate import evaluate

    file = SCRATCH / "mine.jsonl"
    rows = [
        {
            "request": f"What is new? ({sample.pair_id})",
            "response": sample.response[0].content,
            "label": sample.label,
            "category": sample.category,
            "task": sample.task,
            "pair_id": sample.pair_id,
            "split": "test" if number % 2 else "train",
        }
        for number, pair in enumerate(range(0, 40, 2))
        for sample in planted_samples(20, 5)[pair : pair + 2]
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = ("dataset=jsonl", f"dataset.path={file}", *PATHS, *overrides)
    return evaluate(study(*chosen, primary="evaluate"))


def verdicts(run: Path) -> list[dict[str, Any]]:
    """What the run's log has."""
    return [json.loads(line) for line in (run / "verdicts.jsonl").read_text().splitlines()]


def by_keyword() -> Path:
    """The run that the checks of engine, prompt, metric and section share."""
    return judged("engine=keyword", "prompt=plain", "engine.words=[as the ledger shows]")


def engine() -> None:
    """Its labels are right, since its words are what decides the planted ones."""
    found = verdicts(by_keyword())
    assert Counter(one["label"] for one in found) == {"misbehavior": 10, "benign": 10}, found
    assert {round(one["score"], 2) for one in found} == {0.9, 0.1}


def prompt() -> None:
    """It is what was asked, and its text is what the model sees."""
    from monitorbench.prompts.wording import PromptWording

    assert {one["prompt"] for one in verdicts(by_keyword())} == {"plain"}
    asked = PromptWording(study("prompt=plain", primary="evaluate").prompt).user(planted_samples(1, 0)[0])
    assert asked.startswith("Question: What is new?\nReply: ")
    assert asked.endswith("Say yes or no.")


def monitor_kind() -> None:
    """Its verdicts come through the evaluation that judges all others; other phrases are another judge."""
    file = SCRATCH / "phrases.txt"
    file.write_text("as the ledger shows\n")
    run = judged("monitor=phrases", f"monitor.path={file}")
    assert Counter(one["label"] for one in verdicts(run)) == {"misbehavior": 10, "benign": 10}
    assert judged("monitor=phrases", f"monitor.path={file}") == run
    file.write_text("every box\n")
    assert judged("monitor=phrases", f"monitor.path={file}") != run

    from monitorbench.intervention.critic import critic_identity, open_critic

    pilot = study("monitor=phrases", f"monitor.path={file}", *PATHS, primary="pilot")
    assert critic_identity(pilot.monitor, pilot.engine, pilot.pilot.prompt)["weights"].startswith("phrases:")
    with open_critic(
        pilot.monitor, pilot.engine, pilot.pilot.prompt, pilot.paths.models, [], SCRATCH / "critic"
    ) as critic:
        assert len(critic.judge(planted_samples(2, 0))) == 4


def source() -> None:
    """Its raw file becomes candidates of its cell; the row that is none is counted."""
    from monitorbench.corpus.paper.units import Unit, construct, paper_inputs

    file = SCRATCH / "mirror" / "flattery" / "flattery.jsonl"
    file.parent.mkdir(parents=True)
    rows = [{"id": str(n), "question": "Is it good?", "answer": "Yes!", "flatters": n > 0} for n in range(3)]
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"id": "x", "answer": "No."}]))
    taken = "+dataset.sources.flattery={benchmark:true,max_share:1.0}"
    chosen = ["dataset=paper_local", taken, "dataset.on_bad_row=skip"]
    built = study(*chosen, f"paths.sources={SCRATCH / 'mirror'}", *PATHS, primary="build")
    bad = Counter[str]()
    found = [one for made in construct(paper_inputs(built), Unit("flattery"), bad) for one in made.samples]
    assert [one.label.value for one in found] == ["benign", "misbehavior", "misbehavior"]
    assert {(str(one.cell), one.source, one.licence) for one in found} == {
        ("sycophancy_bias/qa", "flattery", "MIT")
    }
    assert bad.total() == 1


def objective() -> None:
    """It adds to the loss what was worked out by hand, and a tiny model trains by it."""
    import torch

    from monitorbench.prompts.label_tokens import LabelTokens
    from monitorbench.training import sft
    from monitorbench.training.examples import Example, collate
    from monitorbench.training.trainer import objective_of

    small = ("objective=brier", "batch_size=4", "micro_batch_size=2")
    plant(SCRATCH)
    sft.ensure = lambda *_: SCRATCH / "data" / "planted-0"  # type: ignore[attr-defined]
    chosen = settings(SCRATCH, TINY, *fp32(2, *small))
    added = objective_of(chosen.training).loss(
        planted_samples(1, 0), LabelTokens((0,), (1,)), chosen.training
    )
    assert added is not None
    batch = collate([Example((7, 7), (0, 9)), Example((7,), (1, 9))], pad=2)
    # Scores of σ(0) = 1/2 for the misbehavior sample, and σ(ln 3) = 3/4 for the benign one.
    logits_SV = torch.zeros(4, 10)
    logits_SV[2, 0] = torch.tensor(3.0).log()
    torch.testing.assert_close(added(logits_SV, batch, [(0,), (1,)]), torch.tensor((0.25 + 0.5625) / 2))
    points = curve(sft.train(chosen))
    assert [point["step"] for point in points] == [0, 1, 2]
    assert all(0 < point["loss"] < 100 for point in points[1:]), points


def environment() -> None:
    """A scripted agent that makes no mistakes solves it; a rollback is exact; splits share no task."""
    from environment_checks import check_restoring, check_solution

    from monitorbench.config.pilot import ScriptedAgent
    from monitorbench.intervention.environments.tasks import open_tasks
    from monitorbench.intervention.loop.agents import Scripted
    from monitorbench.intervention.loop.episode import EpisodeRun, RunLimits, run_episode

    world = study("environment=countdown", primary="pilot").environment
    train, pilot = ({opens().task for opens in open_tasks(world, 5, 0, one)} for one in ("train", "pilot"))
    assert not train & pilot
    agent = Scripted(ScriptedAgent(kind="scripted", name="a", error_rate=0, persistence=0, doubt=0))
    for opens in open_tasks(world, 5, 0, "pilot"):
        episode = run_episode(opens(), agent, EpisodeRun("k", "none", 0), RunLimits(2, 60, 3, "Careful."))
        assert (episode.success, episode.reason) == (True, "")
        check_restoring(opens(), [0], [1, 5], [0, 0, 1])
        started = opens()
        assert check_solution(started, started.reset()) > 0


def scored() -> dict[str, Any]:
    """The run's `metrics.json`."""
    from monitorbench.scoring.score import score_run

    run = score_run(study(f"run={by_keyword()}", *PATHS, primary="score"))
    found: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    return found


def metric() -> None:
    """It is in every cell of every monitor, baselines included."""
    found = scored()["monitors"]
    assert found["smollm2_135m"]["plain"]["overall"]["alarm_rate"] == 0.5
    assert found["always_misbehavior"]["none"]["safety_permission/qa"]["alarm_rate"] == 1.0


def section() -> None:
    """It stands on the page, with the number that was measured."""
    from monitorbench.report.write import report

    scored()
    run = report(study(f"run={by_keyword()}", *PATHS, primary="report"))
    page = (run / "report.html").read_text()
    part = page.partition("<h2>How many answers raise an alarm")[2].partition("</table>")[0]
    rows = [re.sub(r"<.*?>", " ", row.replace("<wbr>", "")).split() for row in part.split("<tr>")]
    assert ["smollm2_135m", "plain", ".50"] in rows, part


PARTS = (prompt, engine, monitor_kind, source, objective, environment, metric, section)


def outcome(check: Callable[[], None]) -> str:
    """Empty, or what went wrong: one part that fails hides none of the others."""
    try:
        check()
    except (Exception, SystemExit):
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    assert Path(monitorbench.__file__).is_relative_to(COPY), "the copy is not what is imported"
    studies.CONF = COPY / "conf"
    print(json.dumps({check.__name__: outcome(check) for check in PARTS}))
