"""Judging with a model and the probe beside it: two evaluation runs, each pass of the model paid once.

Each is the run that judging with it alone gives: found again, resumed, combined and calibrated as any other.
"""

import logging
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import states_engine
from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.open import share_engine
from monitorbench.engines.protocol import Model
from monitorbench.engines.stored.load import load_config, load_tokenizer
from monitorbench.engines.weights import weights_folder
from monitorbench.judging.evaluate import Planned, evaluate, needed_splits, planned_evaluation
from monitorbench.judging.identity import IN_KEYS, verdict_key
from monitorbench.judging.pair.beside import HeadBesideModel, HeadReading, Ids, Span
from monitorbench.judging.probed import NOTHING, fitting_head, probe_reading
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.response_span import response_span
from monitorbench.records import Sample, Split, Verdict
from monitorbench.runs.files import DIRECTORY_LOCK, locked
from monitorbench.runs.verdict_log import VERDICTS, VerdictLog, open_verdict_log

_log = logging.getLogger(__name__)


def evaluate_pair(study: Study) -> Path:
    """Judge with the model and with `monitor.head_beside`; returns the model's run, the probe's is printed.

    A sample whose verdict by one of them is there already is judged by the other alone. Raises what
    `evaluate` raises for either, and `ConfigError` for what no probe can read.
    """
    if study.adapters:
        raise ConfigError("adapters: monitor.head_beside reads the base's states; expected no adapters")
    states_engine(study.monitor, study.engine, study.prompt)
    of_model = study.model_copy(update={"monitor": study.monitor.without_probe()})
    of_probe = study.model_copy(update={"monitor": study.monitor.probe_alone()})
    data = ensure(study, needed_splits(study.evaluate, study.monitor.router, study.prompt.shots))
    model, probe = planned_evaluation(of_model, data), planned_evaluation(of_probe, data)
    if not (model.done or probe.done):
        _judge_together(study, of_model, probe, data)
    print(evaluate(of_probe), flush=True)
    return evaluate(of_model)


def _judge_together(study: Study, of_model: Study, probe: Planned, data: Path) -> None:
    """Judge with the model, and put what the probe reads of its passes into the log of the probe's run."""
    prompt, monitor, models = probe.judge.prompt, study.monitor, study.paths.models
    engine = states_engine(monitor, study.engine, prompt)
    head = fitting_head(monitor.probe_alone(), prompt)
    weights = weights_folder(monitor, models)
    depth = load_config(weights).num_hidden_layers
    renderer = Renderer(prompt, load_tokenizer(weights), monitor.opening, date=monitor.template_date)
    split = Split(study.evaluate.split)
    samples: defaultdict[Ids, list[Sample]] = defaultdict(list)
    for sample in read_split(data, split, study.dataset.view(split.value)):
        samples[renderer.render(sample)].append(sample)

    def span_of(ids: Ids) -> Span:
        return response_span(renderer, samples[ids][0], ids)

    with (
        locked(probe.run.path / DIRECTORY_LOCK),
        open_verdict_log(probe.run.path / VERDICTS) as log,
    ):

        def note(read: HeadReading) -> None:
            for sample in samples[read.ids]:
                _log_verdict(log, probe, sample, read)

        def around(model: Model) -> Model:
            return HeadBesideModel(model, head, depth, span_of, note)

        with closing(share_engine(of_model.monitor, engine, models, [], around)) as shared:
            evaluate(of_model, shared)


def _log_verdict(log: VerdictLog, probe: Planned, sample: Sample, read: HeadReading) -> None:
    names = {name: probe.judge.identity[name] for name in IN_KEYS}
    key = verdict_key(sample.id, read.ids, decoding=NOTHING, **names)
    if key in log.entries:
        return
    text, answer, score = probe_reading(read.score)
    log.append(
        Verdict(
            key=key,
            sample_id=sample.id,
            prompt=probe.judge.prompt.name,
            answer=text,
            label=answer.label,
            unscored=None,
            score=score.score,
            label_mass=None,
            finish_reason="probe",
            prompt_tokens=len(read.ids),
            completion_tokens=0,
            seconds=round(read.seconds, 4),
        )
    )
