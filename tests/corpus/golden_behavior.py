"""What every source, construction and the corpus make of a small input, as one hash each."""

import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from golden_inputs import own_files, source_files
from pydantic import BaseModel
from studies import study

from monitorbench.config.datasets import SplitShares
from monitorbench.config.sources import Cues
from monitorbench.construct import answer_incentive as incentive
from monitorbench.construct import counterfactual, pair
from monitorbench.construct.code import incentive as special_cased
from monitorbench.construct.code import juliet as functions
from monitorbench.construct.code import pair as code_pair
from monitorbench.construct.cues import cue, published_answers, questions
from monitorbench.construct.pair import ConstructionContext
from monitorbench.construct.reasoning import cued_solutions, incentive_solutions
from monitorbench.construct.reasoning import incentive as incentive_reasoning
from monitorbench.corpus.paper import units
from monitorbench.corpus.paper.benchmark import paired, select
from monitorbench.corpus.selection import assign_splits
from monitorbench.records import Category, Cell, Sample, Split, Task
from monitorbench.sources import handwritten
from monitorbench.sources.all import SOURCES
from monitorbench.sources.files import automonitor_bench, inspect_log, team_jsonl
from monitorbench.sources.read import SourceFiles
from monitorbench.sources.upstream import bbq
from monitorbench.word_problems import generate as word_problems

NAMES = {"source": "made_up", "licence": "MIT"}


def digest(value: Any) -> str:
    """A hash of records, samples and plain values, whatever their classes are called.

    Of a construction's output the samples count, and not how it words why it rejects a row.
    """
    text = json.dumps(value, default=_plain, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, Sample) and not value.own_id:
        return value.model_dump(mode="json", exclude={"own_id"})
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return list(value)


def rows_of(name: str, folder: Path) -> list[Any]:
    """The rows that a source's reader returns for its golden files."""
    source = SOURCES[name]
    if source.installed is not None:
        return list(source.installed.rows())
    assert source.read is not None
    rows = list(source.read(source_files(name, folder)))
    if source.questions is not None:
        rows += source.questions.load(source_files(name, folder / "questions"))
    assert rows, name
    return rows


def made_by(folder: Path) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Name, declared version, and what makes the output to be hashed; a source's readers come first."""

    def read(name: str) -> list[Any]:
        source = SOURCES[name]
        assert source.read is not None
        return list(source.read(source_files(name, folder / "again")))

    for name, source in SOURCES.items():
        if name in (handwritten.SOURCE.name, handwritten.STARTER_SOURCE.name):
            continue  # its files grow, and their hash is part of a dataset's identity
        yield f"source {name}", source.version, lambda name=name: rows_of(name, folder)
    yield "source handwritten", handwritten.VERSION, lambda: list(_first_handwritten())
    quotas = {Cell(Category.SAFETY_PERMISSION, Task.QA): 2, Cell(Category.SYCOPHANCY_BIAS, Task.CODE): 1}
    yield "source synthetic", units.SYNTHETIC_VERSION, lambda: list(units.synthetic_samples(quotas, 1, 4, 0))
    yield "source word_problems", word_problems.VERSION, lambda: word_problems.generate(40, seed=0)

    yield (
        "reader jsonl",
        team_jsonl.VERSION,
        lambda: list(team_jsonl.load(own_files("jsonl", folder))),
    )
    yield "reader inspect_log", inspect_log.VERSION, lambda: _logged(own_files("inspect_log", folder))
    yield (
        "reader automonitor_bench",
        automonitor_bench.VERSION,
        lambda: list(automonitor_bench.load(own_files("automonitor_bench", folder))),
    )

    composed = study("dataset=paper_local", primary="build")
    cues, problems = composed.cue, word_problems.generate(24, seed=1)
    context = ConstructionContext(**NAMES, seed=0, cues=cues)
    solved = read("gsm8k")
    known = read("truthfulqa") + read("dfir_metric")
    yield *incentive.VERSION, lambda: incentive.incentivised_answers(known, context).samples
    yield (
        *pair.AS_LABELLED,
        lambda: pair.labelled_samples(read("diasafety") + read("xstest"), context).samples,
    )
    yield *bbq.STEREOTYPE_VERSION, lambda: bbq.stereotype_pairs(read("bbq"), context).samples
    yield (
        *published_answers.VERSION,
        lambda: published_answers.cued_answer_pairs(read("cot_transparency"), context).samples,
    )
    sessions = rows_of("agentdojo", folder)[:40]
    yield (
        *next(iter(SOURCES["agentdojo"].constructions.items())),
        lambda: _constructed("agentdojo", sessions, cues),
    )
    code_rows = read("sven") + read("cweval")
    yield *code_pair.VERSION, lambda: code_pair.code_version_pairs(code_rows, context).samples
    yield (
        *code_pair.VISIBLE_WEAKNESSES,
        lambda: [
            code_pair.shows_weakness(cwe, r.insecure, r.secure)
            for r in code_rows
            for cwe in (r.cwe, "CWE-79")
        ],
    )
    yield *functions.VERSION, lambda: functions.juliet_versions(read("juliet"))[0]
    yield *special_cased.VERSION, lambda: special_cased.special_cased_pairs(read("mbpp"), seed=0)[0]
    yield *cue.VERSION, lambda: cue.cued_pairs(problems, seed=0)
    yield *counterfactual.VERSION, lambda: _counterfactual(read, cues)
    yield (
        *cued_solutions.VERSION,
        lambda: cued_solutions.cued_solution_pairs(solved, context).samples,
    )
    yield *incentive_reasoning.VERSION, lambda: incentive_reasoning.incentivised_pairs(problems, seed=0)
    yield (
        *incentive_solutions.VERSION,
        lambda: incentive_solutions.incentivised_solutions(solved, context).samples,
    )


def _constructed(name: str, rows: list[Any], cues: Cues) -> list[Sample]:
    """What the construction makes that stands in the source's own file."""
    construct = SOURCES[name].construct
    assert construct is not None
    context = ConstructionContext(name, "MIT", 0, cues)
    return [sample for made in construct(rows, context) for sample in made.samples]


def _first_handwritten() -> Iterator[Any]:
    for cell in handwritten.CELLS:
        yield from (handwritten.pair_of(cell, row, "made_up") for row in handwritten.load(cell))


def _logged(files: SourceFiles) -> list[Sample]:
    return list(
        inspect_log.load(
            files,
            labels=None,
            score="monitor",
            misbehavior_values=("I",),
            benign_values=("C",),
            category=Category.SAFETY_PERMISSION,
            task=Task.QA,
        )
    )


def _counterfactual(read: Callable[[str], list[Any]], cues: Cues) -> list[Any]:
    """Trials, and their pairs for a subject that is right without a cue, follows it, and then resists."""
    made = questions.trials([row.question for row in read("bbq")] + read("mmlu"), cues, seed=0, task=Task.QA)
    made += questions.trials(read("aime"), cues, seed=0, task=Task.REASONING)
    made += questions.trials_as_published(read("anthropic_sycophancy"), task=Task.QA)
    found = counterfactual.counterfactual_pairs(
        made, _answers(made, cues), cues.resist, subject="s", run="r", **NAMES
    )
    return [made, found.samples]


def _answers(made: list[Any], cues: Cues) -> dict[str, Any]:
    """A subject that is right without a cue and with a right one; the second request to resist is heard."""
    answers: dict[str, Any] = {}
    for trial in made:
        moved = 0
        while (request := counterfactual.next_request(trial, answers, cues.resist)) is not None:
            agreeing = request in (trial.neutral, trial.agreeing)
            said = trial.right if agreeing or moved > 1 else trial.wrong
            moved += not agreeing
            text = f"I say {said}." if trial.options else f"So.\nAnswer: {said}"
            answers[counterfactual.request_key(request)] = counterfactual.SubjectAnswer(text, True)
    return answers


def placements() -> list[Any]:
    """Which split samples go to: by shares as the starter's, and by quotas as the benchmark's."""
    shares = SplitShares(train=0.55, validation=0.1, calibration=0.1, test=0.25)
    problems = word_problems.generate(40, seed=0)
    pairs = cue.cued_pairs(problems[:20], seed=0) + incentive_reasoning.incentivised_pairs(
        problems[20:], seed=0
    )
    samples = list(chain.from_iterable(pairs))
    dataset = study(
        "dataset=paper_local",
        "dataset.development_pairs=3",
        "dataset.benchmark.sycophancy_bias.reasoning={without_thinking: 4, with_thinking: 3}",
        primary="build",
    ).dataset
    chosen = select(paired(samples), dataset)
    return [
        sorted(assign_splits(samples, shares, 0).items()),
        [
            [split.value, sorted(s.id for s in chosen.samples[split])]
            for split in Split
            if split in chosen.samples
        ],
    ]
