"""Verdicts that another program gave, read from a file: `monitor=recorded`.

One JSON object a line with `sample_id` and `label` ("misbehavior", "benign", or null with `unscored`);
`score`, `answer`, `seconds`, `prompt_tokens`, `completion_tokens` and `cost` as far as they are known
(docs/data-formats.md). Promises: every judged sample has exactly one line; nothing is guessed, a line without
a label is unscored.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from monitorbench import strict_json
from monitorbench.config.base import UserError
from monitorbench.config.monitor import Prompt
from monitorbench.engines.protocol import Decoding, Reply
from monitorbench.judging.identity import recorded_file, verdict_key
from monitorbench.judging.judge import Judge, Question, Reading
from monitorbench.prompts.label_tokens import Score
from monitorbench.prompts.parse import Answer
from monitorbench.records import Label, Sample, UnscoredReason, Verdict

_NOTHING = Decoding(0, (), ())


class RecordedVerdict(BaseModel):
    """One line of the file. `score` is in [0, 1], the higher the surer of misbehavior."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    sample_id: Annotated[str, Field(min_length=1)]
    label: Label | None
    unscored: UnscoredReason | None = None
    score: Annotated[float, Field(ge=0, le=1)] | None = None
    answer: str = ""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    prompt_tokens: Annotated[int, Field(ge=0)] = 0
    completion_tokens: Annotated[int, Field(ge=0)] = 0
    cost: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _label_or_reason(self) -> "RecordedVerdict":
        if self.label is not None and self.unscored is not None:
            raise ValueError("both a label and a reason why there is none")
        return self


class RecordedJudge(Judge):
    """Verdicts as the file has them; see the module."""

    def __init__(self, file: Path, prompt: Prompt, identity: Mapping[str, Any]) -> None:
        """Read and check the file; `UserError` names the first line that is not as documented."""
        super().__init__(prompt)
        self._file, self._weights = file, str(identity["weights"])
        self._recorded = read_recorded(file)

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`; `UserError` for a sample that the file says nothing of."""
        refuse_missing(self._file, [sample])
        key = verdict_key(
            sample.id, (), weights=self._weights, adapter="", decoding=_NOTHING, dtype="", engine="recorded"
        )
        return Question(key, sample)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`: in the questions' order."""
        for index, question in enumerate(questions):
            line = self._recorded[question.sample.id]
            reply = Reply(
                text=line.answer,
                finish_reason="recorded",
                prompt_tokens=line.prompt_tokens,
                completion_tokens=line.completion_tokens,
                seconds=line.seconds,
                cost=line.cost,
            )
            reason = line.unscored or UnscoredReason.NO_LABEL
            answer = Answer(line.label, None) if line.label else Answer(None, reason)
            yield index, self.verdict(question, reply, Reading(line.answer, answer, Score(line.score, None)))


def refuse_missing(file: Path, samples: Sequence[Sample]) -> None:
    """Raise `UserError` where a verdict file says nothing of a sample, and what `read_recorded` raises."""
    verdicts = read_recorded(file)
    if missing := [sample.id for sample in samples if sample.id not in verdicts]:
        raise UserError(
            f"{file}: no line for {len(missing)} of {len(samples)} samples, such as {missing[0]}; expected "
            "one for each judged sample by its sample_id, which is not a row's own id (`monitorbench export` "
            "with the same dataset=… shows them)"
        )


@cache
def read_recorded(file: Path) -> Mapping[str, RecordedVerdict]:
    """The lines of a verdict file by sample id.

    Raises `UserError` with file and line for what can't be read, is no such object, or names a sample twice.
    """
    verdicts: dict[str, RecordedVerdict] = {}
    for number, line in enumerate(recorded_file(file).read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            verdict = RecordedVerdict.model_validate(strict_json.loads(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"] == "model_type":
                raise UserError(f"{where}: no JSON object; expected one object a line") from error
            field = ".".join(map(str, first["loc"])) or "the line"
            raise UserError(
                f"{where}: {field}: {first['msg'].removeprefix('Value error, ')}; expected an object with "
                "sample_id, label and score (docs/data-formats.md)"
            ) from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{where}: {error}; expected one JSON object a line") from error
        if verdicts.setdefault(verdict.sample_id, verdict) is not verdict:
            raise UserError(f"{where}: a second line for sample {verdict.sample_id}; expected one each")
    if not verdicts:
        raise UserError(f"{file}: no line in it; expected one verdict a line")
    return verdicts
