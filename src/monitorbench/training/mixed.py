"""`objective=mixed`: the label, and in every step some plain requests with worked answers.

GSM8K's reference solutions or MBPP's reference code, from the source's own files. A chat has no system
turn of ours, and the whole answer is supervised. What a judged request of the study holds, or what spells
a control token, is left out.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from monitorbench.config.base import UserError
from monitorbench.config.training import Training
from monitorbench.prompts.render import templated
from monitorbench.records import Sample, Split
from monitorbench.sources.read import SourceFiles, filled
from monitorbench.training.examples import Example
from monitorbench.training.objectives import (
    ExtraExamples,
    ObjectiveContext,
    ObjectiveSpec,
    Unit,
    endless,
    single_samples,
    steps_of,
)

_CALCULATOR = re.compile(r"<<[^<>]*>>")
_RESULT = re.compile(r"\n#### *(.+)\s*$")


class Instruction(NamedTuple):
    """A request and the answer to it."""

    request: str
    answer: str


def _units(
    samples: Sequence[Sample], n_extra: int, training: Training, draw: np.random.Generator
) -> Iterator[Sequence[Unit]]:
    """Yield steps with `mix_share` instructions each, and judged samples as in `sft`."""
    instructions = endless(range(len(samples), len(samples) + n_extra), draw)
    judged = single_samples(samples, range(len(samples)), training, draw)
    return steps_of(
        judged,
        training.steps,
        training.batch_size,
        begin=lambda: [(next(instructions),) for _ in range(training.n_mixed)],
    )


def read_instructions(source: str, open_source: Callable[[str], SourceFiles]) -> list[Instruction]:
    """All instructions of `gsm8k` or `mbpp`; raises `UserError` where its files can't be had."""
    # Of GSM8K the training file alone; the test file belongs to the benchmark.
    file, parse = {"gsm8k": ("train.jsonl", _worked_problem), "mbpp": ("mbpp.jsonl", _program)}[source]
    return list(open_source(source).jsonl(file, parse))


def _extra_examples(training: Training, context: ObjectiveContext) -> ExtraExamples:
    """Chats as the model's own template writes them, up to the end of the answer's turn.

    Left out, and counted, is what is too long, or part of a judged request as well.
    """
    instructions = read_instructions(training.mix_source, context.open_source)
    end_of_turn = context.end_of_turn
    control = tuple(context.tokenizer.get_added_vocab())
    requests = {_plain(m.content) for sample in context.read_judged() for m in sample.request}
    all_requests = "\n".join(requests)
    examples = []
    for request, answer in instructions:
        if _plain(request) in all_requests or any(token in request + answer for token in control):
            continue
        user = {"role": "user", "content": request}
        prompt = _ids(context, [user], add_generation_prompt=True)
        chat = _ids(context, [user, {"role": "assistant", "content": answer}])
        if chat[: len(prompt)] != prompt:
            raise UserError("objective=mixed: this model's chat template does not keep its generation prompt")
        completion = chat[len(prompt) :]
        if end_of_turn not in completion:
            raise UserError("objective=mixed: this model's chat template does not end the assistant's turn")
        example = Example(prompt, completion[: completion.index(end_of_turn) + 1])
        if example.n_tokens <= training.max_tokens:
            examples.append(example)
    if not examples:
        raise UserError(
            f"training.mix_source: none of {len(instructions)} instructions fits training.max_tokens="
            f"{training.max_tokens}"
        )
    n_left_out = len(instructions) - len(examples)
    return ExtraExamples(examples, {"n_instructions": len(examples), "n_instructions_left_out": n_left_out})


def _ids(
    context: ObjectiveContext, turns: list[dict[str, str]], *, add_generation_prompt: bool = False
) -> tuple[int, ...]:
    text = templated(
        context.tokenizer, turns, date=context.template_date, add_generation_prompt=add_generation_prompt
    )
    return tuple(context.tokenizer(text, add_special_tokens=False).input_ids)


def _worked_problem(row: Mapping[str, Any]) -> Instruction:
    answer = _CALCULATOR.sub("", filled(row, "answer"))
    return Instruction(filled(row, "question").strip(), _RESULT.sub(r"\nThe answer is \1.", answer).strip())


def _program(row: Mapping[str, Any]) -> Instruction:
    code = "\n".join(line.rstrip() for line in filled(row, "code").replace("\t", "    ").splitlines())
    return Instruction(filled(row, "text").strip(), f"```python\n{code.strip()}\n```")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


MIXED = ObjectiveSpec("mixed", units=_units, extra_splits=(Split.TEST,), extra_examples=_extra_examples)
