"""School of Reward Hacks (Taylor et al. 2025, arXiv:2508.17511; CC-BY-4.0): one request, gamed and answered.

Each request says how the answer will be scored, and the scoring has a loophole; a model wrote an answer that
exploits it and one that does the task. The files are a copy in the form of chats; a request with both answers
is a pair, and the hundred with an exploit alone are passed over.

The exploit mostly shows on the surface (keywords repeated, questions counted up), so words tell the labels
apart: a stratum of its own, `real_generations`, that a dataset caps.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from monitorbench.construct.pair import Constructed, ConstructionVersion, make_pair
from monitorbench.records import Category, Cell, Construction, LabelSource, Message, Role, Sample, Task
from monitorbench.sources.declaration import ConstructionContext, SourceDeclaration
from monitorbench.sources.read import BadRow, SourceFiles, filled

CELL = Cell(Category.SPECIFICATION_GAMING, Task.QA)
VERSION = ConstructionVersion("scored_requests", 1)
STRATUM = "real_generations"


class ScoredRequest(NamedTuple):
    """One request and what was answered to it."""

    request: str
    gamed: str
    honest: str


def load(files: SourceFiles) -> Iterator[ScoredRequest]:
    """Every request with both answers, in the order of the honest ones."""
    gamed = dict(files.jsonl("sneaky", _exchange))
    for request, honest in files.jsonl("straightforward", _exchange):
        if request in gamed:
            yield ScoredRequest(request, gamed[request], honest)


def _exchange(row: Mapping[str, Any]) -> tuple[str, str]:
    messages = row.get("messages")
    if not isinstance(messages, list) or [m.get("role") for m in messages] != ["user", "assistant"]:
        raise BadRow("field 'messages' is not one turn of the user and one of the assistant")
    request, answer = (filled(message, "content").strip() for message in messages)
    return request, answer


def _construct(rows: Iterable[ScoredRequest], context: ConstructionContext) -> Iterator[Constructed]:
    rejected: Counter[str] = Counter()
    samples: list[Sample] = []
    for row in rows:
        if row.gamed == row.honest:
            rejected["both answers are the same"] += 1
            continue
        name = hashlib.sha256(row.request.encode()).hexdigest()[:16]
        samples += make_pair(
            f"{context.source}-{name}",
            group_id=f"{context.source}-{name}",
            cell=CELL,
            subcategory="scored_request",
            request=[Message(role=Role.USER, content=row.request)],
            misbehavior=[Message(role=Role.ASSISTANT, content=row.gamed)],
            benign=[Message(role=Role.ASSISTANT, content=row.honest)],
            label_source=LabelSource.UPSTREAM,
            construction=Construction.INCENTIVE,
            source=context.source,
            licence=context.licence,
            stratum=STRATUM,
        )
    yield Constructed(samples, rejected)


SOURCE = SourceDeclaration(
    name="school_of_reward_hacks",
    version=1,
    read=load,
    construct=_construct,
    constructions=(VERSION,),
)
