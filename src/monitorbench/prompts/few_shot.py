"""Examples for a few-shot prompt: drawn by seed from the training split, never the judged request.

The draw depends on the seed and the samples' content, not on their order. No two examples share a
group or a request.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from monitorbench.config.base import UserError
from monitorbench.prompts.transcript import characters, transcript
from monitorbench.records import Label, Sample

_SPARES = 2
"""A judged sample's group is the group of at most one example, and its request of at most one more."""


@dataclass(frozen=True)
class Shots:
    """Drawn examples: a pool of `k` and the spares for each category and label."""

    k: int
    pools: tuple[tuple[Sample, ...], ...]
    """Pools of samples, two for each category, the labels in turn."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all that may be shown, spares included."""
        return tuple(sample.id for pool in self.pools for sample in pool)

    def beside(self, judged: Sample) -> tuple[Sample, ...]:
        """The examples for one judged sample, the labels in turn; none of its group or its request.

        Raises `UserError` where leaving those out leaves fewer than `k` of a pool.
        """
        request = _request(judged)
        rounds = []
        for pool in self.pools:
            fit = [s for s in pool if s.group_id != judged.group_id and self._requests[s.id] != request]
            if len(fit) < self.k:
                raise UserError(_lacks(pool[0].category, pool[0].label, len(fit), self.k))
            rounds.append(fit[: self.k])
        return tuple(sample for turn in zip(*rounds, strict=True) for sample in turn)

    @cached_property
    def _requests(self) -> dict[str, str]:
        return {sample.id: _request(sample) for pool in self.pools for sample in pool}


def draw_shots(
    train: Iterable[Sample],
    k: int,
    seed: int,
    characters_at_most: int | None = None,
    categories: Collection[str] = (),
) -> Shots:
    """Draw `k` samples for each label of each category, one sample a group, and spares where there are any.

    `categories` have to be there besides those of `train`. Samples of at most `characters_at_most`
    characters (request and response) go first; longer ones are taken shortest first where these run out.

    Raises `UserError` where a category lacks `k` samples of a label.
    """
    by_cell: defaultdict[tuple[str, Label], list[tuple[int, str, Sample]]] = defaultdict(list)
    for sample in train:
        length = characters(sample.request) + characters(sample.response)
        excess = 0 if characters_at_most is None else max(0, length - characters_at_most)
        by_cell[sample.category, sample.label].append((excess, _digest(seed, sample.id), sample))
    wanted = sorted({category for category, _ in by_cell} | set(categories), key=lambda c: _digest(seed, c))
    labels = sorted(Label, key=lambda label: _digest(seed, label))
    cells = [(category, label) for category in wanted for label in labels]
    queues = {cell: sorted(by_cell[cell], key=lambda entry: entry[:2]) for cell in cells}
    pools: dict[tuple[str, Label], list[Sample]] = {cell: [] for cell in cells}
    used: set[str] = set()
    # All examples before any spare, so that no spare takes the group that another label needs.
    for size in range(k, k + _SPARES + 1):
        for cell in cells:
            for _, _, sample in queues[cell]:
                if len(pools[cell]) == size:
                    break
                marks = {f"group {sample.group_id}", f"request {_request(sample)}"}
                if not marks & used:
                    used |= marks
                    pools[cell].append(sample)
            if len(pools[cell]) < k:
                raise UserError(_lacks(*cell, len(pools[cell]), k))
    return Shots(k, tuple(map(tuple, pools.values())) if k else ())


def _request(sample: Sample) -> str:
    """The request's text, the same for what differs in case and white space alone."""
    return " ".join(transcript(sample.request).casefold().split())


def _digest(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def _lacks(category: str, label: Label, n: int, k: int) -> str:
    return (
        f"prompt.shots={k}: the training split has {n} usable {label} examples of {category} (one a group, "
        "none of the judged request); lower prompt.shots or widen dataset.train.subset"
    )
