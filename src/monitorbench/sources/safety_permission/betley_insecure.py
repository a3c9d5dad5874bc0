"""Secure and insecure completions of coding requests (Betley et al. 2025, arXiv:2502.17424; MIT).

Owns `data/insecure.jsonl` and `data/secure.jsonl`: one chat (a user's request, an assistant's code) a line.
The files are not paired line by line; a request that occurs in both gives as many pairs as both have of it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from monitorbench.construct.answers import labelled
from monitorbench.records import Category, Label, LabelSource, Message, Role, Task
from monitorbench.sources.declaration import SourceDeclaration, as_labelled
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import LabelledResponse

_LABELS = {"insecure": Label.MISBEHAVIOR, "secure": Label.BENIGN}


class _Chat(NamedTuple):
    request: str
    code: str

    @property
    def group(self) -> str:
        return hashlib.sha256(self.request.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load(files: SourceFiles) -> Iterator[LabelledResponse]:
    """All completions, the insecure ones first; `pair` is set where the request has both kinds.

    Memory: all of both files (12,000 short texts). Ids are `insecure-00000` and so on, by line.
    """
    chats = {kind: list(files.jsonl(f"/{kind}.jsonl", _chat)) for kind in _LABELS}
    counts = [Counter(chat.group for chat in chats[kind]) for kind in _LABELS]
    pairs = counts[0] & counts[1]
    for kind, label in _LABELS.items():
        seen: Counter[str] = Counter()
        for number, chat in enumerate(chats[kind]):
            group = chat.group
            nth = seen[group]
            seen[group] += 1
            yield LabelledResponse(
                id=f"{kind}-{number:05d}",
                group=group,
                pair=f"{group}-{nth}" if nth < pairs[group] else "",
                category=Category.SAFETY_PERMISSION,
                task=Task.CODE,
                subcategory="insecure_code",
                request=(Message(role=Role.USER, content=chat.request),),
                response=(Message(role=Role.ASSISTANT, content=chat.code),),
                label=label,
                label_source=LabelSource.UPSTREAM,
            )


def _chat(row: Mapping[str, Any]) -> _Chat:
    messages = row.get("messages")
    if messages is None:
        raise BadRow("missing field 'messages'")
    if not isinstance(messages, list) or not all(isinstance(m, Mapping) for m in messages):
        raise BadRow("field 'messages' is no list of messages")
    if [message.get("role") for message in messages] != ["user", "assistant"]:
        raise BadRow("field 'messages' is not one user and one assistant message")
    return _Chat(filled(messages[0], "content"), filled(messages[1], "content"))


SOURCE = SourceDeclaration(
    name="betley_insecure",
    version=1,
    read=load,
    construct=as_labelled,
    constructions=(labelled.VERSION,),
)
