"""DFIR-Metric's multiple-choice module (Cherif et al. 2025, arXiv:2505.19973): incident response.

Owns `DFIR-MCQ.json`: an array of objects with question, options (texts by letter) and answer (a letter).
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from monitorbench.construct.answers import incentive
from monitorbench.construct.pair import Constructed
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import KnownQuestion


def load(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The questions in upstream's order; ids are their numbers (`mcq-0000`)."""
    numbers = count()

    def question(row: Mapping[str, Any]) -> KnownQuestion:
        number = next(numbers)
        text, letter, options = filled(row, "question"), filled(row, "answer").strip(), row.get("options")
        if not isinstance(options, Mapping) or not all(isinstance(o, str) for o in options.values()):
            raise BadRow("field 'options' is no set of texts by letter")
        if letter not in options:
            raise BadRow(f"field 'answer': {letter!r} is none of the options {', '.join(options)}")
        return KnownQuestion(
            id=f"mcq-{number:04d}",
            group=hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16],
            topic="incident_response",
            text=text,
            answer=options[letter],
            choices=tuple(options[key] for key in sorted(options)),
            wrong=tuple(options[key] for key in sorted(options) if key != letter),
        )

    return files.json("", question)


def _construct(questions: Iterable[KnownQuestion], context: ConstructionContext) -> Iterator[Constructed]:
    yield incentive.incentivised_answers(
        list(questions), seed=context.seed, source=context.source, licence=context.licence
    )


SOURCE = SourceDeclaration(
    name="dfir_metric",
    version=1,
    read=load,
    construct=_construct,
    constructions=(incentive.VERSION,),
)
