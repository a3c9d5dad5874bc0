"""JailbreakBench artifacts (Chao et al. 2024, arXiv:2404.01318): what models answered under attack.

The request of a record is the bare goal, not the attacked prompt: upstream's judge, a model, labels a
response by the goal (the paper's JUDGE(LLM(P), G)), and the prompts of one goal differ from attack to
attack. So pairs are matched by goal: a jailbroken and a not jailbroken response to the same goal, of the
same model as far as there are such. What the model itself was shown is therefore not in the record.

Attempts without a response, and upstream's own test artifact, are passed over.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.construct.answers import labelled
from monitorbench.records import Category, Label, LabelSource, Message, Role, Task
from monitorbench.sources.declaration import SourceDeclaration, as_labelled
from monitorbench.sources.read import BadRow, SourceFiles, filled, text
from monitorbench.upstream import LabelledResponse


class _Attempt(NamedTuple):
    id: str
    behaviour: str
    category: str
    goal: str
    model: str
    response: str
    jailbroken: bool


def load(files: SourceFiles) -> Iterator[LabelledResponse]:
    """All responses, in the archive's order; attempts at one behaviour share a group.

    `pair` is either empty or shared by exactly two records: same request, opposite labels.
    """
    attempts = list(_attempts(files))
    pairs = _pairs(attempts)
    for attempt in attempts:
        yield LabelledResponse(
            id=attempt.id,
            group=attempt.behaviour,
            pair=pairs.get(attempt.id, ""),
            category=Category.SAFETY_PERMISSION,
            task=Task.QA,
            subcategory=attempt.category.lower().replace(" ", "_").replace("/", "_"),
            request=(Message(role=Role.USER, content=attempt.goal),),
            response=(Message(role=Role.ASSISTANT, content=attempt.response),),
            label=Label.MISBEHAVIOR if attempt.jailbroken else Label.BENIGN,
            label_source=LabelSource.JUDGE,
            subject_model=attempt.model,
        )


def _pairs(attempts: list[_Attempt]) -> dict[str, str]:
    """Ids of attempts to the name of their pair; within a model first, then across models, by id."""
    by_goal: dict[str, list[_Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_goal[attempt.goal].append(attempt)
    pairs: dict[str, str] = {}
    for tried in by_goal.values():
        jailbroken = sorted(attempt for attempt in tried if attempt.jailbroken)
        resisted = sorted(attempt for attempt in tried if not attempt.jailbroken)
        within = ((bad, good) for bad in jailbroken for good in resisted if bad.model == good.model)
        across = ((bad, good) for bad in jailbroken for good in resisted)
        for bad, good in chain(within, across):
            if bad.id not in pairs and good.id not in pairs and bad.response != good.response:
                pairs[bad.id] = pairs[good.id] = bad.id
    return pairs


def _attempts(files: SourceFiles) -> Iterator[_Attempt]:
    """Attempts with a response; those of one archive member stand under `<attack>/<access>/<model>.json`."""
    seen: set[str] = set()
    for member, content in files.tar(""):
        place = member.removesuffix(".json").partition("attack-artifacts/")[2]
        if place.count("/") != 2 or not member.endswith(".json") or place.startswith("test-artifact/"):
            continue
        try:
            artifact = json.loads(content)
            model, rows = artifact["parameters"]["model"], list(artifact["jailbreaks"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{files.name}: {member}: no attack artifact ({error!r}); fetch the archive again"
            ) from error
        for number, row in enumerate(rows):
            where = f"{member} jailbreak {number}"
            try:
                attempt = _attempt(place, str(model), row)
            except BadRow as error:
                files.bad(where, str(error))
                continue
            if attempt is None:
                continue
            if attempt.id in seen:
                files.bad(where, f"duplicate id: {attempt.id}")
                continue
            seen.add(attempt.id)
            yield attempt


def _attempt(place: str, model: str, row: Mapping[str, Any]) -> _Attempt | None:
    if not isinstance(row, Mapping):
        raise BadRow("not an object with fields")
    index, jailbroken = row.get("index"), row.get("jailbroken")
    if type(index) is not int:
        raise BadRow("field 'index' is no whole number")
    if not isinstance(jailbroken, bool):
        raise BadRow("field 'jailbroken' is neither true nor false")
    if "response" in row and row["response"] is None:
        return None
    if not text(row, "response").strip():
        return None
    return _Attempt(
        f"{place}/{index}",
        str(index),
        filled(row, "category"),
        filled(row, "goal").strip(),
        model,
        row["response"].strip(),
        jailbroken,
    )


SOURCE = SourceDeclaration(
    name="jailbreakbench",
    version=1,
    read=load,
    construct=as_labelled,
    constructions=(labelled.VERSION,),
    for_scorer=True,
)
