"""Stages that build and label data, and that make a monitor, run it, ask it again and serve it."""

from monitorbench.cli.stage import Stage, imported
from monitorbench.config.study import Monitor

_PLANNED_RUN = imported("monitorbench.studies.forecast:PlannedRun")


def _asks_a_model(monitor: Monitor) -> bool:
    """Whether the monitor asks its engine anything: recorded verdicts and word counts don't."""
    return monitor.kind == "language_model" and monitor.verdicts is None


MAKING = (
    Stage(
        "build",
        "monitorbench.corpus.build:ensure",
        """Build a dataset's splits, with its manifest.

    monitorbench build dataset=starter
    monitorbench build dataset=paper plan=true    # what could be had, by cell; builds nothing

Prints the dataset's directory as its last line.
""",
        reads="dataset source cue paths",
        plan="monitorbench.corpus.build:print_plan",
    ),
    Stage(
        "elicit",
        "monitorbench.corpus.elicit:elicit",
        """\
Ask a subject model (`monitor=`) real questions, without and with a misleading cue; keep its answers.

    monitorbench elicit monitor=smollm2_135m 'elicit.sources=[bbq]'

Interrupted, it resumes with the questions that have no answer yet.
Prints the answers' directory, for `dataset.elicited=DIR`.
""",
        reads="elicit monitor engine source cue paths",
        is_live=True,
        no_plan="its questions are known once the sources are read; expected a small elicit.max_questions",
    ),
    Stage(
        "annotate",
        lambda study, _: imported("monitorbench.annotation.stage:annotate")(study, study.annotation),
        """Have samples labelled by annotators: export blind batches, import what they return.

    monitorbench annotate dataset=starter annotation.samples_per_cell=20

Prints the batch's directory; with `annotation.action=import run=BATCH annotation.returned=[FILE,FILE]`
the directory of the kept samples.
""",
        reads="annotation dataset run paths",
        no_plan="it writes batches for people, and runs no model",
    ),
    Stage(
        "label",
        "monitorbench.labelling.stage:label",
        """Say which samples of unlabelled traffic people should read, and what a few labels tell of monitors.

    monitorbench label 'label.scores=[decisions.jsonl]' label.budget=100    # blind batches, probabilities
    monitorbench label run=latest 'annotation.returned=[first.csv,second.csv]'    # rates, and what is next

Estimates stay unbiased whatever the scores say. Where their intervals are too wide for a decision, the next
batch is there. Prints the run's directory as its last line.
""",
        reads="label annotation stakes calibrate run paths",
        plan="monitorbench.labelling.stage:print_plan",
    ),
    Stage(
        "queue",
        "monitorbench.labelling.stage:queue",
        """Fill a day's audit queue from a guardrail's log: its alerts, riskiest first, and a share blindly.

    monitorbench queue 'label.scores=[decisions.jsonl]' label.budget=50    # blind batches, probabilities
    monitorbench queue run=latest 'annotation.returned=[first.csv,second.csv]'    # rates, and today's batch

The log may have grown since. What the alerts leave out is found in the blind share, so that the miss rate is
estimated without bias. Prints the run's directory as its last line.
""",
        reads="label annotation stakes calibrate run paths",
        plan="monitorbench.labelling.stage:print_queue_plan",
    ),
    Stage(
        "mirror",
        "monitorbench.sources.mirror:mirror",
        """\
Fill a local mirror with the raw files of a dataset, on a machine with a network; resumes, verifies.

    monitorbench mirror dataset=paper paths.sources=DIR

Prints a line a source, what could not be had and why, and the mirror's folder as its last line.
""",
        reads="dataset source paths",
        no_plan="it fetches what `build dataset=paper plan=true` names as missing, and nothing twice",
    ),
    Stage(
        "audit",
        "monitorbench.corpus.audit:audit",
        """\
Write a dataset's card: counts, lengths, sources, licences, and what gives labels away without reading.

    monitorbench audit dataset=starter

Builds the dataset where it is not there. Prints its directory as its last line.
""",
        reads="dataset source cue paths",
        no_plan="it builds the dataset and reads it; expected `build … plan=true`",
    ),
    Stage(
        "export",
        "monitorbench.interop.export:export",
        """\
Export a dataset (chats for TRL, a hub repository with its card), or a run's scores as an Inspect log.

    monitorbench export dataset=starter export.format=chat
    monitorbench export dataset=starter export.format=hub export.repo=OWNER/NAME  # a dry run
    monitorbench export export.format=inspect run=runs/evaluate/NAME-HASH

Prints the directory with what was written as its last line.
""",
        reads="export dataset run operating_point paths",
    ),
    Stage(
        "train",
        "monitorbench.training.stage:train",
        """Fine-tune a monitor with LoRA on the label tokens of a train subset.

    monitorbench train dataset.train.subset=safety_permission
    monitorbench train -m experiment=tune/starter    # learning rate and rank, by the validation split

Prints the training run's directory as its last line: the value for monitor.adapter.
""",
        reads="seed dataset monitor prompt training tracking cluster paths",
        is_live=True,
        after_sweep=imported("monitorbench.training.pace:show_trials"),
        value=imported("monitorbench.training.pace:validation_auroc"),
        runs=lambda study: [_PLANNED_RUN("train", study)],
    ),
    Stage(
        "fit",
        "monitorbench.training.fit_head:fit_head",
        """Fit a probe: a head on a monitor's hidden states, of a layer and position that validation chooses.

    monitorbench fit head=linear dataset.train.subset=safety_permission
    monitorbench evaluate monitor.head=runs/fit/NAME-HASH

`plan=true` says how many prompts it would read, what it would try and how long that takes.
Prints the run's directory as its last line: the value for monitor.head.
""",
        reads="seed dataset monitor prompt head engine cluster paths",
        is_live=True,
        runs=lambda study: [_PLANNED_RUN("fit", study)],
    ),
    Stage(
        "merge",
        "monitorbench.training.publish:merge_run",
        """\
Merge a trained adapter into its base: a full model folder (safetensors), the value for monitor.path.

    monitorbench merge run=runs/train/NAME-HASH

Prints that folder as its last line.
""",
        reads="run paths",
        no_plan="it reads the adapter and its base once and writes one model folder",
    ),
    Stage(
        "push",
        "monitorbench.training.publish:push_run",
        """Publish a trained adapter, or with push.merged=true the merged model, with a generated card.

    monitorbench push run=runs/train/NAME-HASH push.repo=OWNER/NAME

That is a dry run; push.dry_run=false uploads. Prints the run's directory, where the card
is `README.md`, as its last line.
""",
        reads="push run paths",
        no_plan="push.dry_run=true, the default, writes the card and uploads nothing",
    ),
    Stage(
        "evaluate",
        "monitorbench.judging.adapters:evaluate_each",
        """Judge a dataset's test split: one verdict per sample in verdicts.jsonl.

    monitorbench evaluate monitor=smollm2_135m prompt=direct,evidence engine=transformers -m
    monitorbench evaluate monitor=smollm2_135m 'adapters=[RUN,RUN]' # base and adapters, one start

Prints the evaluation run's directory as its last line.
""",
        reads="evaluate dataset monitor adapters prompt engine tracking paths",
        is_live=True,
        judges=lambda study: _asks_a_model(study.monitor),
        after_sweep=imported("monitorbench.report.tables.tables:show_sweep"),
        runs=lambda study: [_PLANNED_RUN("evaluate", study)],
    ),
    Stage(
        "wording",
        imported("monitorbench.studies.asking:choose_a_wording"),
        """\
Choose how a monitor is asked: judge the validation split with several prompts, take the highest AUROC.

    monitorbench wording monitor=smollm2_135m
    monitorbench wording 'wording.prompts=[direct,direct_act]' wording.test=all
    monitorbench transfer 'transfer.wordings=[latest]'    # the tested prompts side by side

The test split is judged under the chosen prompt afterwards (`wording.test`: none, chosen, all), and these
runs are printed. Prints the run's directory (wording.json) as its last line.
""",
        reads="wording seed dataset monitor prompt engine score tracking paths",
        plan=imported("monitorbench.studies.asking:print_wording_plan"),
        is_live=True,
        judges=lambda study: _asks_a_model(study.monitor),
        no_frozen="composes a study for each prompt; expected the typed settings",
    ),
    Stage(
        "views",
        imported("monitorbench.studies.asking:compare_what_is_seen"),
        """\
Compare what a monitor sees: judge the same samples with several views, units and policies, paired.

    monitorbench views 'views.views=[all,no_reasoning,actions_only]' 'views.units=[trajectory,action]'
    monitorbench views 'views.views=[all]' 'views.policies=[built_in,paper,safety_permission]'
    monitorbench views views.probe=true head=linear engine=transformers    # a probe fitted for each

Each is an evaluation run, and these are printed; the others are compared with the first, corrected by Holm.
Prints the run's directory (views.json) as its last line.
""",
        reads="views evaluate seed dataset monitor prompt head engine score tracking paths",
        plan=imported("monitorbench.studies.asking:print_views_plan"),
        is_live=True,
        judges=lambda study: _asks_a_model(study.monitor),
        no_frozen="composes a study for each way of asking; expected the typed settings",
    ),
    Stage(
        "stress",
        "monitorbench.stress.stage:stress",
        """\
Judge an evaluation's samples again under changes that must not change the label: does the judge stand?

    monitorbench stress run=latest 'stress.changes=[instruction,padding.2k]' stress.pairs_per_cell=10

Prints what is shown to make it worse, a row a change, and the run's directory (stress.json) as its last line.
""",
        reads="stress run operating_point engine score paths",
        no_plan="what a change alters is known once it is made; expected stress.pairs_per_cell=2 first",
        is_live=True,
    ),
    Stage(
        "serve",
        "monitorbench.guardrail.serve:serve",
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
    ),
)
