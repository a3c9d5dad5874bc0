"""Stages that make a monitor, run it, ask it again and serve it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitorbench.cli.script import asks_a_model, evaluation, one_table, stage
from monitorbench.cli.stage import Compose
from monitorbench.config.study import Study

if TYPE_CHECKING:
    from monitorbench.studies.forecast import PlannedRun


def _training(study: Study) -> "list[PlannedRun]":
    from monitorbench.studies.forecast import PlannedRun

    return [PlannedRun("train", study)]


def _trials(jobs: Sequence[tuple[Study, Path]]) -> None:
    from monitorbench.training.trials import show_trials

    show_trials(jobs)


def _validation_auroc(run: Path) -> float:
    from monitorbench.training.trials import validation_auroc

    return validation_auroc(run)


def _wording(study: Study, compose: Compose) -> Path:
    from monitorbench.studies.wording import choose_a_wording

    return choose_a_wording(study, lambda name: compose([f"prompt={name}"]).prompt)


def _wording_plan(study: Study, compose: Compose) -> None:
    from monitorbench.studies.wording import print_wording_plan

    print_wording_plan(study, lambda name: compose([f"prompt={name}"]).prompt)


TRAIN = stage(
    "train",
    "monitorbench.training.stage:train",
    """Fine-tune a monitor with LoRA on the label tokens of a train subset.

    monitorbench train dataset.train.subset=safety_permission
    monitorbench train -m experiment=tune/starter    # learning rate and rank, by the validation split

Prints the training run's directory as its last line: the value for monitor.adapter.
""",
    reads="seed dataset monitor prompt training tracking cluster paths",
    is_live=True,
    after_sweep=_trials,
    value=_validation_auroc,
    runs=_training,
)

FIT = stage(
    "fit",
    "monitorbench.training.fit_head:fit_head",
    """Fit a probe: a head on a monitor's hidden states, of a layer and position that validation chooses.

    monitorbench fit head=linear dataset.train.subset=safety_permission
    monitorbench evaluate monitor.head=runs/fit/NAME-HASH

Prints the run's directory as its last line: the value for monitor.head.
""",
    reads="seed dataset monitor prompt head engine paths",
    no_plan="it reads hidden states once, about as long as `evaluate` takes for the same samples",
    is_live=True,
)

MERGE = stage(
    "merge",
    "monitorbench.training.publish:merge_run",
    """Merge a trained adapter into its base: a full model folder (safetensors), the value for monitor.path.

    monitorbench merge run=runs/train/NAME-HASH

Prints that folder as its last line.
""",
    reads="run paths",
    no_plan="it reads the adapter and its base once and writes one model folder",
)

PUSH = stage(
    "push",
    "monitorbench.training.publish:push_run",
    """Publish a trained adapter, or with push.merged=true the merged model, with a generated card.

    monitorbench push run=runs/train/NAME-HASH push.repo=OWNER/NAME

That is a dry run; push.dry_run=false uploads. Prints the run's directory, where the card
is `README.md`, as its last line.
""",
    reads="push run paths",
    no_plan="push.dry_run=true, the default, writes the card and uploads nothing",
)

EVALUATE = stage(
    "evaluate",
    "monitorbench.judging.adapters:evaluate_each",
    """Judge a dataset's test split: one verdict per sample in verdicts.jsonl.

    monitorbench evaluate monitor=smollm2_135m prompt=direct,evidence engine=transformers -m
    monitorbench evaluate monitor=smollm2_135m 'adapters=[RUN,RUN]' # base and adapters, one start

Prints the evaluation run's directory as its last line.
""",
    reads="evaluate dataset monitor adapters prompt engine tracking paths",
    is_live=True,
    judges=asks_a_model,
    after_sweep=one_table,
    runs=evaluation,
)

WORDING = stage(
    "wording",
    _wording,
    """Choose how a monitor is asked: judge the validation split with several prompts, take the highest AUROC.

    monitorbench wording monitor=smollm2_135m
    monitorbench wording 'wording.prompts=[direct,direct_act]' wording.test=all
    monitorbench transfer 'transfer.wordings=[latest]'    # the tested prompts side by side

The test split is judged under the chosen prompt afterwards (`wording.test`: none, chosen, all), and these
runs are printed. Prints the run's directory (wording.json) as its last line.
""",
    reads="wording seed dataset monitor prompt engine score tracking paths",
    plan=_wording_plan,
    is_live=True,
    judges=asks_a_model,
    no_frozen="composes a study for each prompt; expected the typed settings",
)

STRESS = stage(
    "stress",
    "monitorbench.stress.stage:stress",
    """Judge an evaluation's samples again under changes that must not change the label: does the judge stand?

    monitorbench stress run=latest 'stress.changes=[instruction,padding.2k]' stress.pairs_per_cell=10

Prints what is shown to make it worse, a row a change, and the run's directory (stress.json) as its last line.
""",
    reads="stress run operating_point engine score paths",
    no_plan="what a change alters is known once it is made; expected stress.pairs_per_cell=2 first",
    is_live=True,
)

SERVE = stage(
    "serve",
    "monitorbench.guardrail.stage:serve",
    """Serve a monitor, adapter included, through vLLM's OpenAI-compatible server until Ctrl-C.

    monitorbench serve monitor=smollm2_135m engine=vllm
    monitorbench serve serve.guardrail=true operating_point=latest    # flag or pass, as calibrated
    monitorbench serve monitor=smollm2_135m engine=transformers monitor.head_beside=RUN    # with its probe

With a probe (a run of fit.py) model and probe answer POST /judge from one pass.
Prints the run's directory (server.json has the address) once the server is healthy.
""",
    reads="serve monitor adapters prompt engine operating_point paths",
    no_plan="it serves until it is stopped",
    is_live=True,
)
