"""What a server with a probe asks: one request and response judged, by the model, its probe, or both.

Nothing of what is judged stays: neither text nor states are written, and no request waits for a batch.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import TransformersEngine, states_engine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.engines.hidden_states import HiddenStates
from monitorbench.engines.open import open_model
from monitorbench.engines.stored.load import load_config, load_tokenizer
from monitorbench.engines.stored.states import as_stored
from monitorbench.engines.weights import weights_folder
from monitorbench.judging.local import LocalPrompt
from monitorbench.judging.pair.beside import HeadBesideModel, HeadReading, Ids, Span
from monitorbench.judging.pair.judgement import Judgement, Judges, sample_of
from monitorbench.judging.probed import fitting_head, probe_reading
from monitorbench.prompts.render import Renderer
from monitorbench.prompts.response_span import response_span
from monitorbench.records import Message, Role, Sample, UnscoredReason


@contextmanager
def open_judges(
    monitor: Monitor, engine: TransformersEngine, prompt: Prompt, models: Path
) -> Iterator[Judges]:
    """A function that judges one sample after the other, from one thread, its model loaded and tried.

    With `monitor.head_beside` the model's verdict has the probe's score beside it, with `monitor.head` the
    verdict is the probe's, of a pass that ends at its layer; else the model judges alone. Raises
    `ConfigError` for a head of another monitor or prompt, and for a prompt or monitor that no probe can
    read; `UserError` where weights are missing.
    """
    states_engine(monitor, engine, prompt)
    try:
        opens = _probe if monitor.head else _model
        judges, close = opens(monitor, engine, prompt, models)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"monitor={monitor.name} prompt={prompt.name}: {error}") from error
    try:
        message = (Message(role=Role.USER, content="?"),)
        judges(sample_of(message, message))
        yield judges
    finally:
        close()


def _model(
    monitor: Monitor, engine: TransformersEngine, prompt: Prompt, models: Path
) -> tuple[Judges, Callable[[], None]]:
    """The model alone, or with the probe beside it."""
    spans: dict[Ids, Span] = {}
    read: list[HeadReading] = []
    model = open_model(monitor.without_probe(), engine, models)
    head = fitting_head(monitor.probe_alone(), prompt) if monitor.head_beside else None
    if head is not None:
        depth = load_config(weights_folder(monitor, models)).num_hidden_layers
        model = HeadBesideModel(model, head, depth, spans.__getitem__, read.append)
    renderer = Renderer(prompt, model.tokenizer, monitor.opening, date=monitor.template_date)
    prompted = LocalPrompt(model, prompt, monitor, None)

    def judges(sample: Sample) -> Judgement:
        question = prompted.question(sample)
        ids = question.request.token_ids
        if question.too_long:
            return Judgement(None, UnscoredReason.TOO_LONG, question.detail, None, None, len(ids))
        if head is not None:
            spans.clear()
            spans[ids] = _span(renderer, sample, ids, head.read_from.position)
            read.clear()
        ((_, reply),) = prompted.replies([question])
        _, answer, score = prompted.read(reply)
        probe = read[0].score if head is not None else None
        return Judgement(answer.label, answer.unscored, reply.detail, score.score, probe, len(ids))

    return judges, prompted.close


def _probe(
    monitor: Monitor, engine: TransformersEngine, prompt: Prompt, models: Path
) -> tuple[Judges, Callable[[], None]]:
    """The probe alone; its model is cut behind the layer that it reads."""
    head = fitting_head(monitor, prompt)
    weights = weights_folder(monitor, models)
    renderer = Renderer(prompt, load_tokenizer(weights), monitor.opening, date=monitor.template_date)
    reads = head.read_from
    states = HiddenStates(engine, weights, (reads.layer,), (reads.position,), reads.window)

    def judges(sample: Sample) -> Judgement:
        ids = renderer.render(sample)
        if len(ids) > monitor.context_tokens:
            detail = f"{len(ids)} tokens, {monitor.context_tokens} fit"
            return Judgement(None, UnscoredReason.TOO_LONG, detail, None, None, len(ids))
        found = states.states(ids, _span(renderer, sample, ids, reads.position))
        score = head.suspicion(as_stored(found.states[:, 0, 0], reads.storage))
        return Judgement(probe_reading(score).answer.label, None, "", score, None, len(ids))

    return judges, states.close


def _span(renderer: Renderer, sample: Sample, ids: Ids, position: str) -> Span:
    """Where the response is; not looked for where only the last token is read."""
    return (len(ids) - 1, len(ids)) if position == "last" else response_span(renderer, sample, ids)
