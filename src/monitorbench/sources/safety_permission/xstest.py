"""XSTest (Röttger et al. 2023, arXiv:2308.01263; CC-BY-4.0): unsafe prompts, complied with and refused.

Five models' completions, each read by two annotators. Used are the unsafe prompts (their `type` begins with
`contrast`) and completions on which both annotators agree: full compliance is misbehavior, full refusal is
benign. Partial refusals are neither, and the safe prompts have no misbehavior: both are passed over.

A refusal reads like a refusal, so words tell the labels apart: the stratum `refusal`.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from monitorbench.construct.pair import Constructed, ConstructionVersion, make_pair
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Role, Sample, Task
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled

CELL = Cell(Category.SAFETY_PERMISSION, Task.QA)
VERSION = ConstructionVersion("annotated_completions", 1)
STRATUM = "refusal"
_COMPLIED, _REFUSED, _PARTLY = "1_full_compliance", "2_full_refusal", "3_partial_refusal"
_PER_PROMPT = 2


class AnnotatedCompletion(NamedTuple):
    """One model's completion of an unsafe prompt, and whether both annotators saw it comply or refuse."""

    prompt: str
    kind: str
    model: str
    completion: str
    verdict: str


def load(files: SourceFiles) -> Iterator[AnnotatedCompletion]:
    """The completions of unsafe prompts, file by file; `verdict` is empty where the annotators differ."""
    for file in files.matching():
        name = (file.config.path or file.config.mirror).rpartition("completions_")[2].partition(".")[0]
        yield from files.csv(f"completions_{name}.", partial(_completion, model=name))


def _completion(row: Mapping[str, Any], model: str) -> AnnotatedCompletion | None:
    kind = filled(row, "type")
    if not kind.startswith("contrast"):
        return None
    first, two = filled(row, "annotation_1"), filled(row, "annotation_2")
    if not {first, two} <= {_COMPLIED, _REFUSED, _PARTLY}:
        raise BadRow(f"no known annotation: {first!r}, {two!r}")
    return AnnotatedCompletion(
        filled(row, "prompt").strip(),
        kind.removeprefix("contrast_"),
        model,
        filled(row, "completion").strip(),
        first if first == two else "",
    )


def _construct(rows: Iterable[AnnotatedCompletion], context: ConstructionContext) -> Iterator[Constructed]:
    """Make at most two pairs a prompt, of one model where it did both, else of two (`subject_model` says)."""
    rejected: Counter[str] = Counter()
    prompts: defaultdict[str, list[AnnotatedCompletion]] = defaultdict(list)
    for row in rows:
        if not row.verdict:
            rejected["the annotators differ"] += 1
        elif row.verdict == _PARTLY:
            rejected["a partial refusal"] += 1
        else:
            prompts[row.prompt].append(row)
    samples: list[Sample] = []
    for prompt, completions in prompts.items():
        complied = [row for row in completions if row.verdict == _COMPLIED]
        refused = [row for row in completions if row.verdict == _REFUSED]
        pairs = min(len(complied), len(refused), _PER_PROMPT)
        rejected["no completion of the other kind is left"] += len(completions) - 2 * pairs
        name = hashlib.sha256(prompt.encode()).hexdigest()[:16]
        for number in range(pairs):
            bad = complied[number]
            good = min(refused, key=lambda row: abs(len(row.completion) - len(bad.completion)))
            refused.remove(good)
            pair = make_pair(
                f"{context.source}-{name}-{number}",
                group_id=f"{context.source}-{name}",
                cell=CELL,
                subcategory=bad.kind,
                request=[Message(role=Role.USER, content=prompt)],
                misbehavior=[Message(role=Role.ASSISTANT, content=bad.completion)],
                benign=[Message(role=Role.ASSISTANT, content=good.completion)],
                label_source=LabelSource.ANNOTATORS,
                construction=Construction.LABELLED,
                source=context.source,
                licence=context.licence,
                stratum=STRATUM,
            )
            models = (bad.model, good.model)
            samples += [s.model_copy(update={"subject_model": m}) for s, m in zip(pair, models, strict=True)]
    yield Constructed(samples, +rejected)


SOURCE = SourceDeclaration(
    name="xstest",
    version=1,
    read=load,
    construct=_construct,
    constructions=(VERSION,),
)
