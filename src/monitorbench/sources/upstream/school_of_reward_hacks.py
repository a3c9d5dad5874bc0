"""School of Reward Hacks (Taylor et al. 2025, arXiv:2508.17511; CC-BY-4.0): one request, gamed and answered.

Each request says how the answer will be scored, and the scoring has a loophole; a model wrote an answer that
exploits it and one that does the task. The files are a copy in the form of chats; a request with
two different answers is a pair, and the hundred with an exploit alone are passed over.

The exploit mostly shows on the surface (keywords repeated, questions counted up), so words tell the labels
apart: a stratum of its own, `real_generations`, that a dataset caps.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.records import Category, Construction, Label, LabelSource, Message, Role, Task
from monitorbench.sources.declaration import SourceDeclaration, labelled_by_upstream
from monitorbench.sources.read import SourceFiles, exchange, short_hash
from monitorbench.upstream import LabelledResponse


def load(files: SourceFiles) -> Iterator[LabelledResponse]:
    """Both answers to every request, the gamed one first, in the order of the honest ones."""
    gamed = dict(files.jsonl("sneaky", _stripped))
    for request, honest in files.jsonl("straightforward", _stripped):
        if gamed.get(request, honest) == honest:
            continue
        name = short_hash(request)
        for label, answer in ((Label.MISBEHAVIOR, gamed[request]), (Label.BENIGN, honest)):
            yield LabelledResponse(
                id=f"{name}-{label}",
                group=name,
                pair=name,
                category=Category.SPECIFICATION_GAMING,
                task=Task.QA,
                subcategory="scored_request",
                request=(Message(role=Role.USER, content=request),),
                response=(Message(role=Role.ASSISTANT, content=answer),),
                label=label,
                label_source=LabelSource.UPSTREAM,
            )


def _stripped(row: Mapping[str, Any]) -> tuple[str, str]:
    request, answer = exchange(row)
    return request.strip(), answer.strip()


SOURCE = SourceDeclaration(
    name="school_of_reward_hacks",
    version=2,
    read=load,
    construct=labelled_by_upstream("real_generations", Construction.INCENTIVE),
)
