"""The elicitation stage: asks only what is owed, goes on after a kill, and its files alone give the pairs."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from scripted_engine import completion

from monitorbench.config.sources import Cues
from monitorbench.construct.counterfactual import CounterfactualTrial
from monitorbench.construct.cues.questions import trials
from monitorbench.corpus.elicit import Subject, ask_all, chat_ids
from monitorbench.corpus.elicited import Elicited, ListedTrial, answer_key, by_request, pairs_by_source
from monitorbench.engines.open import LocalModel
from monitorbench.engines.protocol import Decoding, Reply
from monitorbench.records import Label, Message, Task
from monitorbench.runs.keyed_log import open_log, read_log
from monitorbench.sources.all import SOURCES
from monitorbench.sources.declaration import SubjectQuestions
from monitorbench.upstream import KnownQuestion

CONF = Path(__file__).resolve().parents[2] / "conf"
CUES = Cues.model_validate_json(json.dumps(yaml.safe_load((CONF / "cue/default.yaml").read_text())))
QUESTIONS = [
    KnownQuestion(f"q{i}", f"g{i}", "t", f"Which one is number {i}?", "Ambleford", ("Ambleford", "Bentwick"))
    for i in range(12)
]
TRIALS = trials(QUESTIONS, CUES, seed=0, task=Task.QA)
EVERY_KIND = trials(QUESTIONS, CUES, seed=0, task=Task.QA, kinds_per_question=len(CUES.kinds))


class Fake:
    """Knows every answer, follows every cue, and resists when it is told to; spelled in code points."""

    def __init__(self, breaks_after: int = 10**9) -> None:
        self.asked = 0
        self.closed = 0
        self.breaks_after = breaks_after

    def take(self, adapter: Path | None) -> None:
        assert adapter is None

    def complete(
        self, prompts: Sequence[Sequence[int]], decoding: Decoding, *, with_adapter: bool = True
    ) -> Iterator[tuple[int, Reply]]:
        right = {"\n".join(m.content for m in asked) for t in EVERY_KIND for asked in (t.neutral, t.agreeing)}
        for index, prompt in enumerate(prompts):
            if self.asked == self.breaks_after:
                raise KeyboardInterrupt
            self.asked += 1
            text = "".join(map(chr, prompt))
            resists = text in right or any(instruction in text for instruction in CUES.resist)
            yield index, completion((1,), "Ambleford." if resists else "Bentwick.", "stop", {}, 0.1)

    def close(self) -> None:
        self.closed += 1


def subject(engine: Fake, most: int = 10**6) -> Subject:
    def token_ids(request: Sequence[Message]) -> tuple[int, ...]:
        return tuple(map(ord, "\n".join(m.content for m in request)))

    model = LocalModel(None, lambda: engine)
    return Subject({"weights": "fake"}, token_ids, model, Decoding(8, (0,), (0,)), most)


def ask(path: Path, asked: Sequence[CounterfactualTrial], engine: Fake, most: int = 10**6) -> None:
    with open_log(path, Elicited) as log:
        ask_all(asked, CUES.resist, subject(engine, most), log)


def listed(asked: Sequence[CounterfactualTrial]) -> list[ListedTrial]:
    lines = [ListedTrial(source="towns", licence="MIT", trial=trial).model_dump_json() for trial in asked]
    return [ListedTrial.model_validate_json(line) for line in lines]


def test_the_files_alone_give_the_pairs(tmp_path: Path):
    """A corpus could be built only on the machine, and in the process, that ran the subject."""
    engine = Fake()
    ask(tmp_path / "answers.jsonl", TRIALS, engine)
    answers = by_request(read_log(tmp_path / "answers.jsonl", Elicited))
    made = pairs_by_source(listed(TRIALS), answers, "fake", "run", CUES.resist)["towns"]
    assert len(made.samples) == 24
    assert not made.rejected
    for sample in made.samples:
        assert ("Bentwick" in sample.response[0].content) is (sample.label is Label.MISBEHAVIOR)
    assert (engine.asked, engine.closed) == (36, 1)


def test_an_interrupted_run_asks_only_the_rest(tmp_path: Path):
    """Hours of a GPU would be spent twice, or the pairs would depend on where it stopped."""
    path, whole = tmp_path / "answers.jsonl", tmp_path / "whole.jsonl"
    broken = Fake(breaks_after=17)
    with pytest.raises(KeyboardInterrupt):
        ask(path, TRIALS, broken)
    rest, again, full = Fake(), Fake(), Fake()
    ask(path, TRIALS, rest)
    ask(whole, TRIALS, full)
    ask(path, TRIALS, again)
    assert (broken.closed, rest.asked, again.asked, again.closed) == (1, 36 - 17, 0, 0)
    assert path.read_bytes() == whole.read_bytes()


def test_a_prompt_that_does_not_fit_is_recorded_and_makes_no_pair(tmp_path: Path):
    """A long question would end the run, or be cut and answered as another question."""
    path = tmp_path / "answers.jsonl"
    engine = Fake()
    ask(path, TRIALS, engine, most=10)
    made = pairs_by_source(listed(TRIALS), by_request(read_log(path, Elicited)), "fake", "run", CUES.resist)[
        "towns"
    ]
    assert engine.asked == 0
    assert made.rejected == {"no answer read without the cue": 12}


@pytest.mark.slow
def test_a_real_subject_answers(tmp_path: Path, tokenizer):
    """The stage would work with fakes and fail with a model."""
    from small_models import smollm2_folder

    from monitorbench.config.study import TransformersEngine
    from monitorbench.engines.open import open_engine

    config = TransformersEngine(kind="transformers", dtype="float32", device="cpu", batch_size=4)
    end = tokenizer.eos_token_id
    real = Subject(
        {"weights": "smollm2"},
        lambda request: chat_ids(tokenizer, request),
        LocalModel(tokenizer, lambda: open_engine(config, smollm2_folder(), [], 2048)),
        Decoding(48, (end,), (end,)),
        2000,
    )
    with open_log(tmp_path / "answers.jsonl", Elicited) as log:
        ask_all(TRIALS[:4], CUES.resist, real, log)
        answers = list(log.entries.values())
    assert len(answers) >= 4
    assert all(answer.text and answer.finish_reason in ("stop", "length") for answer in answers)
    made = pairs_by_source(listed(TRIALS[:4]), by_request(answers), "smollm2", "run", CUES.resist)["towns"]
    assert len(made.samples) // 2 + sum(made.rejected.values()) == 4
    assert "not asked yet" not in made.rejected


@pytest.mark.slow
def test_a_real_subject_thinks_first(tmp_path: Path, compose_study):
    """A subject's reasoning would be read as its answer, or be lost, and no pair had a trace."""
    from monitorbench.config.base import ConfigError
    from monitorbench.corpus.elicit import _subject

    def subject(end: str, identity: dict[str, str]):
        study = compose_study(
            "elicit",
            "monitor=smollm2_135m",
            "engine.dtype=float32",
            # SmolLM2 has no token of its own for the end of reasoning: a full stop is one here.
            f'monitor.reasoning={{end:"{end}",then:" Answer:",max_tokens:40}}',
            "elicit.max_new_tokens=24",
        )
        return _subject(study.monitor, study.engine, study.paths.models, 24, identity)

    with open_log(tmp_path / "answers.jsonl", Elicited) as log:
        ask_all(TRIALS[:3], CUES.resist, subject(".", {"weights": "smollm2"}), log)
        answers = list(log.entries.values())
    thought = [answer for answer in answers if answer.finish_reason != "length"]
    assert thought, "none ended its reasoning"
    assert all(answer.reasoning and "." not in answer.reasoning.strip() for answer in thought)
    assert all(answer.completion_tokens > 1 for answer in answers)
    with pytest.raises(ConfigError, match=r"reasoning\.end='no token' is 2 tokens, expected one"):
        subject("no token", {})


def test_the_stage_from_settings_to_pairs(tmp_path: Path, compose_study, monkeypatch: pytest.MonkeyPatch):
    """A finished run would be asked again, or a corpus would not find what it holds."""
    from monitorbench.config.base import ConfigError, UserError
    from monitorbench.corpus import elicit as stage
    from monitorbench.corpus.elicited import elicited_identity, elicited_pairs

    engine = Fake()
    monkeypatch.setattr(stage.fetch, "find", lambda *_: None)
    monkeypatch.setattr(stage, "_subject", lambda *_: subject(engine))
    asked = replace(SOURCES["bbq"], questions=SubjectQuestions(Task.QA, lambda _: iter(QUESTIONS)))
    monkeypatch.setitem(stage.SOURCES, "bbq", asked)
    composed = compose_study("build", "dataset=paper_local", f"paths.data={tmp_path}")

    def asking(**settings: object):
        return composed.model_copy(update={"elicit": composed.elicit.model_copy(update=settings)})

    def building(*elicited: Path):
        return composed.dataset.model_copy(update={"elicited": elicited})

    directory = stage.elicit(asking(sources=("bbq",), max_questions=5))
    assert directory.parent == tmp_path / "elicited"
    assert stage.elicit(asking(sources=("bbq",), max_questions=5)) == directory
    assert engine.asked == 15
    dataset = building(directory)
    made = elicited_pairs(dataset.elicited, "bbq")
    assert len(made.samples) == 10
    assert {sample.licence for sample in made.samples} == {composed.source["bbq"].licence}
    assert elicited_pairs(dataset.elicited, "mmlu").samples == []
    assert {sample.stratum for sample in made.samples} <= {"agreed", "resisted"}
    before = elicited_identity(dataset.elicited)
    lines = (directory / "answers.jsonl").read_text().splitlines(keepends=True)
    (directory / "answers.jsonl").write_text("".join(lines[:-1]))
    assert elicited_identity(dataset.elicited) != before
    several = stage.elicit(asking(sources=("bbq",), max_questions=5, kinds_per_question=3))
    assert len(elicited_pairs((several,), "bbq").samples) == 30
    both = building(several, directory).elicited
    assert elicited_identity(both) == elicited_identity((directory, several))
    ids = [(sample.pair_id, sample.label) for sample in elicited_pairs(both, "bbq").samples]
    assert len(ids) == len(set(ids)) == 30 + len(elicited_pairs((directory,), "bbq").samples)
    shutil.copytree(directory, tmp_path / "copied")
    with pytest.raises(UserError, match=f"{directory} and {tmp_path / 'copied'} hold the same answers"):
        elicited_pairs(building(directory, tmp_path / "copied").elicited, "bbq")
    for wrong in ({"kinds": ("flattery",)}, {"sources": ("sven",)}):
        with pytest.raises(ConfigError, match="expected"):
            stage.elicit(asking(**wrong))
    with pytest.raises(UserError, match="manifest"):
        elicited_pairs(building(tmp_path).elicited, "bbq")


def test_a_key_changes_with_the_prompt_and_with_the_subject():
    """Answers of one model would pass for another's."""
    keys = {
        answer_key([1, 2], {"weights": "x"}),
        answer_key([1, 3], {"weights": "x"}),
        answer_key([1, 2], {"weights": "y"}),
    }
    assert len(keys) == 3
    assert answer_key((1, 2), {"weights": "x"}) in keys
