"""Examples that a monitor is trained on: prompt ids from the one renderer, and the label as completion.

Checked before step 1: every example supervises the label word and the end of the turn, and none
is truncated; what is too long is dropped and counted.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from monitorbench.config.base import UserError
from monitorbench.prompts.render import Renderer
from monitorbench.records import LabelSource, Sample, Split
from monitorbench.training.stage import refuse_none_fits


class Example(NamedTuple):
    """Token ids of prompt and completion; `completion` is what is supervised.

    For a judged sample that is the label word and the end of the turn.
    """

    prompt: tuple[int, ...]
    completion: tuple[int, ...]

    @property
    def n_tokens(self) -> int:
        """Number of tokens of prompt and completion together."""
        return len(self.prompt) + len(self.completion)


class ExampleBatch(NamedTuple):
    """One forward pass over N examples, and where its S supervised tokens are predicted.

    Padded: a row an example, padded on the left, so that completions end in the last column. Packed: all
    examples in one row; positions start anew with each, there is no mask, and `lengths` keep them apart.
    """

    ids_BT: torch.Tensor
    positions_BT: torch.Tensor
    mask_BT: torch.Tensor | None
    keep: int | torch.Tensor
    """Columns that get logits, as `logits_to_keep` takes it: how many last ones, or their indices."""
    rows_S: torch.Tensor
    columns_S: torch.Tensor
    """Index of each supervised token's column among the kept columns."""
    targets_S: torch.Tensor
    lengths: tuple[int, ...] | None
    """Tokens of each of the N examples, where packed; None where padded."""
    example_S: torch.Tensor
    """Index of the example that a supervised token is of; an example's tokens are consecutive, in order."""


def make_examples(
    samples: Sequence[Sample], renderer: Renderer, max_tokens: int
) -> tuple[list[Sample], list[Example]]:
    """Render samples; returns those that fit into `max_tokens`, and their examples.

    Raises `UserError` when nothing is left, `ValueError` when a completion supervises no label or
    lacks the end of the turn.
    """
    rendered = [Example(renderer.render(sample), renderer.completion(sample.label)) for sample in samples]
    for sample, example in zip(samples, rendered, strict=True):
        if example.completion[:1] != renderer.label_tokens.of(sample.label)[:1]:
            raise ValueError(f"sample {sample.id}: the completion does not start with its label word")
        if example.completion[-1] != renderer.end_of_turn:
            raise ValueError(f"sample {sample.id}: the completion does not end the turn")
    pairs = zip(samples, rendered, strict=True)
    fitting = [(sample, example) for sample, example in pairs if example.n_tokens <= max_tokens]
    refuse_none_fits(len(fitting), len(samples), Split.TRAIN, max_tokens)
    return [sample for sample, _ in fitting], [example for _, example in fitting]


def refuse_unlearnable(samples: Sequence[Sample], examples: Sequence[Example], balance: str) -> None:
    """Refuse samples of which nothing could be told apart.

    Raises `UserError` for samples of one label, with `balance=cell` also in one cell alone, and for samples
    of opposite labels with the same text, unless they are beginnings of runs: of these a share is learned.
    """
    parts = {"the train split": samples}
    if balance == "cell":
        cells = sorted({str(sample.cell) for sample in samples})
        parts |= {cell: [sample for sample in samples if str(sample.cell) == cell] for cell in cells}
    for name, group in parts.items():
        if len({sample.label for sample in group}) == 1:
            raise UserError(
                f"training: all {len(group)} samples of {name} that can be trained on are {group[0].label}; "
                f"expected both labels (training.balance={balance})"
            )
    by_prompt: dict[tuple[int, ...], Sample] = {}
    for sample, example in zip(samples, examples, strict=True):
        if sample.label_source is LabelSource.OUTCOME:
            continue
        before = by_prompt.setdefault(example.prompt, sample)
        if before.label is not sample.label:
            raise UserError(
                f"training: sample {sample.id} ({sample.label}) has the text of {before.id} "
                f"({before.label}); expected one label for a text"
            )


def collate(examples: Sequence[Example], pad: int) -> ExampleBatch:
    """Pad prompt + completion on the left; positions count from each example's first token."""
    rows = [[*example.prompt, *example.completion] for example in examples]
    longest = max(map(len, rows))
    ids_BT = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
    mask_BT = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    n_kept = max(len(example.completion) for example in examples) + 1
    # The token in column c is predicted in column c - 1, and the last column predicts nothing.
    columns = [range(n_kept - 1 - len(e.completion), n_kept - 1) for e in examples]
    return ExampleBatch(
        ids_BT=ids_BT,
        positions_BT=(mask_BT.cumsum(-1) - 1).clamp(min=0),
        mask_BT=mask_BT,
        keep=n_kept,
        rows_S=_owner(examples),
        columns_S=_flat(columns),
        targets_S=_flat(example.completion for example in examples),
        lengths=None,
        example_S=_owner(examples),
    )


def pack(examples: Sequence[Example]) -> ExampleBatch:
    """Put all examples into one row, none of which sees another."""
    lengths = tuple(example.n_tokens for example in examples)
    ends = torch.tensor(lengths).cumsum(0).tolist()
    predicting = _flat(
        range(end - len(e.completion) - 1, end - 1) for e, end in zip(examples, ends, strict=True)
    )
    return ExampleBatch(
        ids_BT=_flat((*example.prompt, *example.completion) for example in examples)[None],
        positions_BT=_flat(map(range, lengths))[None],
        mask_BT=None,
        keep=predicting,
        rows_S=torch.zeros_like(predicting),
        columns_S=torch.arange(len(predicting)),
        targets_S=_flat(example.completion for example in examples),
        lengths=lengths,
        example_S=_owner(examples),
    )


def _owner(examples: Sequence[Example]) -> torch.Tensor:
    return _flat([number] * len(example.completion) for number, example in enumerate(examples))


def _flat(parts: Iterable[Iterable[int]]) -> torch.Tensor:
    return torch.tensor([value for ids in parts for value in ids], dtype=torch.long)
