"""Fitting of a probe: a head on the hidden states that a monitor has in front of its answer.

Writes a run: `head.safetensors`, `search.json` (what validation was chosen from), of a linear head
`directions.safetensors` (the best of every layer and position), and a manifest. The states
are extracted once and kept beside the models; an interrupted extraction goes on where it was, a finished run
is reused.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.engine import fitting_engine
from monitorbench.config.study import Study
from monitorbench.config.training import Head, Position
from monitorbench.corpus.build import ensure
from monitorbench.corpus.store import read_split
from monitorbench.engines.protocol import Request
from monitorbench.engines.stored.head import (
    DIRECTIONS_FILE,
    HEAD_FILE,
    Direction,
    FittedHead,
    HeadPlace,
    ReadFrom,
    save_directions,
)
from monitorbench.engines.weights import weights_identity
from monitorbench.judging.states import States, rendering
from monitorbench.prompts.transcript import shown
from monitorbench.records import Label, Sample, Split
from monitorbench.runs.files import write_json
from monitorbench.runs.progress import progress
from monitorbench.runs.run_folders import fit_run, subset_name
from monitorbench.training import heads

SEARCH = "search.json"
_log = logging.getLogger(__name__)


def fit_head(study: Study) -> Path:
    """Fit `head` on the configured view of the train split; returns the run directory.

    Layer, position and regularisation are chosen by AUROC on the validation split; the test split is never
    read. Raises `ConfigError` for another engine than transformers, an adapter, a prompt that is not direct
    or a monitor that reasons first, `UserError` where no sample fits, the view leaves nothing of any, or a
    split holds one label.
    """
    engine = fitting_engine(study.monitor, study.engine, study.prompt)
    data = ensure(study, [Split.TRAIN, Split.VALIDATION])
    run = fit_run(study, data.name, weights_identity(study.monitor), engine.resolved_dtype)
    if run.done:
        _log.info("fit: reusing %s", run.path)
        return run.path
    with run.recording(study) as results:
        given = read_split(data, Split.TRAIN, study.dataset.train)
        train = shown(given, study.prompt.view)
        validation = shown(read_split(data, Split.VALIDATION, study.dataset.validation), study.prompt.view)
        reads = States(
            study.monitor,
            engine,
            study.prompt,
            study.paths.models,
            study.head.layers,
            study.head.positions,
            study.head.window,
            study.head.storage,
        )
        with reads:
            fitting, n_dropped = _read(reads, train, study.head.max_tokens)
            choosing, _ = _read(reads, validation, study.head.max_tokens)
            _extract(reads, [*fitting.prompts, *choosing.prompts])
            drawn = _drawn(fitting, study.seed) if study.head.draw == "bootstrap" else fitting
            options = _search(study.head, study.seed, reads, drawn, choosing)
        chosen = max(options, key=lambda option: option.rank)  # the first of equals
        head = FittedHead(
            ReadFrom(
                weights=run.identity["weights"],
                rendering=rendering(study.prompt, study.monitor),
                shares=study.head.layers,
                positions=study.head.positions,
                layer=chosen.layer,
                position=chosen.position,
                window=study.head.window,
                storage=study.head.storage,
            ),
            chosen.candidate.tensors,
        )
        head.save(run.path / HEAD_FILE)
        if study.head.kind == "linear":
            save_directions(_directions(options), run.path / DIRECTIONS_FILE)
        write_json(run.path / SEARCH, [option.facts for option in options])
        _log.info("fit: AUROC on the validation split: %.3f, %s", chosen.candidate.auroc, chosen.words)
        results |= {
            "name": subset_name(study.dataset.train.subset),
            "data": data.name,
            "trained_on": sorted({str(sample.cell) for sample in fitting.samples}),
            "n_samples": len(fitting.samples),
            "n_validation": len(choosing.samples),
            "n_dropped_too_long": n_dropped,
            "n_not_shown": len(given) - len(train),
            "tokens": sum(len(prompt.token_ids) for prompt in fitting.prompts),
            "chosen": chosen.facts,
        }
    return run.path


class _Rendered(NamedTuple):
    samples: list[Sample]
    prompts: list[Request]

    @property
    def is_misbehavior(self) -> NDArray[np.bool_]:
        return np.array([sample.label is Label.MISBEHAVIOR for sample in self.samples])


class _Found(NamedTuple):
    layer: int
    position: Position
    candidate: heads.HeadCandidate

    @property
    def facts(self) -> dict[str, Any]:
        candidate = self.candidate
        return {
            "layer": self.layer,
            "position": self.position,
            "regularisation": candidate.regularisation,
            "auroc": candidate.auroc,
            "loss": candidate.loss,
        }

    @property
    def rank(self) -> tuple[float, float]:
        return self.candidate.auroc, -self.candidate.loss

    @property
    def words(self) -> str:
        return f"layer {self.layer}, {self.position}, regularisation {self.candidate.regularisation:g}"


def _read(reads: States, samples: Sequence[Sample], max_tokens: int) -> tuple[_Rendered, int]:
    """The samples that are short enough, rendered; and how many are not."""
    pairs = [(sample, reads.rendering.prompt(sample)) for sample in samples]
    fits = [(sample, prompt) for sample, prompt in pairs if len(prompt.token_ids) <= max_tokens]
    if not fits:
        raise UserError(f"head.max_tokens={max_tokens}: every one of {len(pairs)} samples is longer")
    return _Rendered([sample for sample, _ in fits], [prompt for _, prompt in fits]), len(pairs) - len(fits)


def _drawn(rendered: _Rendered, seed: int) -> _Rendered:
    """Draw whole questions with replacement, as many as there are: one that is drawn twice counts twice."""
    groups = [sample.group_id for sample in rendered.samples]
    names = sorted(set(groups))
    times = Counter(np.random.default_rng(seed).integers(len(names), size=len(names)).tolist())
    n_drawn = {name: times[number] for number, name in enumerate(names)}
    rows = [row for row, group in enumerate(groups) for _ in range(n_drawn[group])]
    return _Rendered([rendered.samples[row] for row in rows], [rendered.prompts[row] for row in rows])


def _directions(found: Sequence[_Found]) -> list[Direction]:
    """Directions of the best linear head of each layer and position, the shallowest first."""
    best: dict[HeadPlace, _Found] = {}
    for option in found:
        place = HeadPlace(option.layer, option.position)
        if place not in best or option.rank > best[place].rank:
            best[place] = option
    tensors = [(place, option.candidate.auroc, option.candidate.tensors) for place, option in best.items()]
    return [Direction(place, auroc, t["v"] / t["scale"]) for place, auroc, t in tensors]


def _extract(reads: States, prompts: Sequence[Request]) -> None:
    missing = [prompt for prompt in prompts if prompt.key not in reads.store]
    n_tokens = sum(len(prompt.token_ids) for prompt in missing)
    _log.info(
        "fit: states of %d prompts, %d to extract (%s tokens)", len(prompts), len(missing), f"{n_tokens:,}"
    )
    if not missing:
        return
    with progress("extracting states", len(missing)) as tick:
        for _ in reads.extract(missing):
            tick.advance()


def _search(head: Head, seed: int, reads: States, fitting: _Rendered, choosing: _Rendered) -> list[_Found]:
    """Every layer and position with every strength of regularisation, the shallowest first."""
    options: list[_Found] = []
    for layer, position, fitted in _fits(head, seed, reads, fitting, choosing):
        try:
            some = list(fitted)
        except ValueError as error:
            raise UserError(f"dataset.train.subset, dataset.validation: {error}; expected both") from error
        options += [_Found(layer, position, candidate) for candidate in some]
        best = max(candidate.auroc for candidate in some)
        _log.info("fit: layer %d, %s: AUROC on the validation split %.3f", layer, position, best)
    return options


def _fits(
    head: Head, seed: int, reads: States, fitting: _Rendered, choosing: _Rendered
) -> Iterator[tuple[int, Position, Iterator[heads.HeadCandidate]]]:
    """The fits of each layer and position, which begin when they are iterated over."""
    if head.kind == "attention":
        for i, layer in enumerate(reads.layers):
            train, validation = (_by_token(reads, split, i) for split in (fitting, choosing))
            yield layer, "tokens", heads.attention_candidates(head, train, validation, seed)
        return
    (fitting_WLPH, fitting_N), (choosing_WLPH, choosing_N) = (
        _pooled(reads, split.prompts) for split in (fitting, choosing)
    )
    for i, layer in enumerate(reads.layers):
        for j, position in enumerate(reads.positions):
            fitted = heads.candidates(
                head,
                heads.HeadSplit(fitting_WLPH[:, i, j], fitting_N, fitting.is_misbehavior),
                heads.HeadSplit(choosing_WLPH[:, i, j], choosing_N, choosing.is_misbehavior),
                seed,
            )
            yield layer, position, fitted


def _pooled(reads: States, prompts: Sequence[Request]) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """[windows, layers, positions, hidden] of all prompts, and how many windows each has."""
    all_states = [reads.store.read(prompt.key) for prompt in prompts]
    return np.concatenate(all_states), np.array([len(states) for states in all_states])


def _by_token(reads: States, split: _Rendered, layer: int) -> heads.TokenSplit:
    """The token states of the layer with that index, read when they are asked for."""
    return heads.TokenSplit(
        lambda number: reads.store.read(split.prompts[number].key)[:, layer, 0], split.is_misbehavior
    )
