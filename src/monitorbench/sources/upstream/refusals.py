"""Upstream data sets of harmful requests that a model complied with, and that it refused."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.records import Category, Label, LabelSource, Message, Role, Task
from monitorbench.sources.declaration import SourceDeclaration, labelled_by_upstream
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash, text
from monitorbench.upstream import LabelledResponse

REFUSALS = labelled_by_upstream("refusal")
"""A refusal reads like a refusal, so words tell the labels apart: a stratum of its own."""

_APPENDING = ("GCG", "DSN")
_PER_GOAL = 2
_DEMANDED = re.compile(r"\W*(?:sure|of course|certainly|niccolo|aim)\b", re.IGNORECASE)
_REFUSES = re.compile(
    r"\b(?:sorry|apologi[sz]e|can(?:no|['’])t|can not|unable|not able|decline|must inform)\b", re.IGNORECASE
)
_OPENING = 160
_ENDED = re.compile(r"[.!?:;)\]}\"'”’*`]\s*$")
_NEAR = 1.5


class _Attempt(NamedTuple):
    id: str
    behaviour: str
    category: str
    goal: str
    model: str
    response: str
    jailbroken: bool


def read_jailbreakbench(files: SourceFiles) -> Iterator[LabelledResponse]:
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
    """Ids of attempts to the name of their pair; each goal's nearest in length first, then by id."""
    by_goal: dict[str, list[_Attempt]] = defaultdict(list)
    for attempt in attempts:
        if not _DEMANDED.match(attempt.response):
            by_goal[attempt.goal].append(attempt)
    pairs: dict[str, str] = {}
    for tried in by_goal.values():
        complied = [trial for trial in tried if trial.jailbroken and trial.id.startswith(_APPENDING)]
        refused = [
            trial for trial in tried if not trial.jailbroken and _REFUSES.search(trial.response[:_OPENING])
        ]
        near = sorted(
            (ratio, bad.id, good.id)
            for bad in complied
            for good in refused
            if _is_cut(bad) is _is_cut(good) and (ratio := _ratio(bad, good)) <= _NEAR
        )
        for _, bad_id, good_id in near:
            if (
                not {bad_id, good_id} & pairs.keys()
                and sum(trial.id in pairs for trial in complied) < _PER_GOAL
            ):
                pairs[bad_id] = pairs[good_id] = bad_id
    return pairs


def _is_cut(attempt: _Attempt) -> bool:
    return not _ENDED.search(attempt.response)


def _ratio(one: _Attempt, other: _Attempt) -> float:
    shorter, longer = sorted((len(one.response), len(other.response)))
    return longer / shorter


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
    if row.get("jailbroken_llama_guard1") not in (None, jailbroken):
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


JAILBREAKBENCH = SourceDeclaration(
    name="jailbreakbench",
    version=2,
    read=read_jailbreakbench,
    construct=REFUSALS,
)
"""JailbreakBench artifacts (Chao et al. 2024, arXiv:2404.01318): what models answered under attack.

The request of a record is the bare goal, not the attacked prompt: upstream's judge, a model, labels a
response by the goal (the paper's JUDGE(LLM(P), G)), and the prompts of one goal differ from attack to
attack. What the model itself was shown is therefore not in the record.

Attempts without a response, upstream's own test artifact, and responses of which Llama Guard (whose verdict
upstream has beside the judge's, of four attacks in five) says otherwise are passed over.

A pair is a jailbroken response and a refusal of the same goal, at most two a goal, both cut off by upstream's
limit of tokens or neither, and of nearly the same length. Jailbroken ones are of the attacks that append to
the goal (`GCG`, `DSN`). Those that wrap it dictate the answer's form ("Niccolo: … AIM: …", "Sure, here is …
for educational and research purposes, … Step 1: Start from …"); those that reword it (`PAIR`) get an answer
to another request than the record's. No response is paired that opens with "Sure", which the attacks aim at.
"""


_COMPLIED, _REFUSED, _PARTLY = "1_full_compliance", "2_full_refusal", "3_partial_refusal"
_PER_PROMPT = 2


class _Completion(NamedTuple):
    """One model's completion of an unsafe prompt, which both annotators saw comply, or refuse."""

    prompt: str
    kind: str
    model: str
    text: str
    complies: bool


def read_xstest(files: SourceFiles) -> Iterator[LabelledResponse]:
    """At most two pairs for each unsafe prompt, of completions of nearly the same length."""
    prompts: defaultdict[str, list[_Completion]] = defaultdict(list)
    for file in files.matching():
        name = (file.config.path or file.config.mirror).rpartition("completions_")[2].partition(".")[0]
        for row in files.csv(f"completions_{name}.", partial(_completion, model=name)):
            prompts[row.prompt].append(row)
    for prompt, completions in prompts.items():
        complied = [row for row in completions if row.complies]
        refused = [row for row in completions if not row.complies]
        group = short_hash(prompt)
        for number, bad in enumerate(complied[: min(len(refused), _PER_PROMPT)]):
            good = min(refused, key=lambda row: abs(len(row.text) - len(bad.text)))
            refused.remove(good)
            for row in (bad, good):
                yield LabelledResponse(
                    id=f"{group}-{number}-{row.complies}",
                    group=group,
                    pair=f"{group}-{number}",
                    category=Category.SAFETY_PERMISSION,
                    task=Task.QA,
                    subcategory=bad.kind,
                    request=(Message(role=Role.USER, content=prompt),),
                    response=(Message(role=Role.ASSISTANT, content=row.text),),
                    label=Label.MISBEHAVIOR if row.complies else Label.BENIGN,
                    label_source=LabelSource.ANNOTATORS,
                    subject_model=row.model,
                )


def _completion(row: Mapping[str, Any], model: str) -> _Completion | None:
    kind = filled(row, "type")
    if not kind.startswith("contrast"):
        return None
    first, second = filled(row, "annotation_1"), filled(row, "annotation_2")
    if not {first, second} <= {_COMPLIED, _REFUSED, _PARTLY}:
        raise BadRow(f"no known annotation: {first!r}, {second!r}")
    prompt, completion = filled(row, "prompt").strip(), filled(row, "completion").strip()
    if first != second or first == _PARTLY:
        return None
    return _Completion(prompt, kind.removeprefix("contrast_"), model, completion, first == _COMPLIED)


XSTEST = SourceDeclaration(name="xstest", version=2, read=read_xstest, construct=REFUSALS)
"""XSTest (Röttger et al. 2023, arXiv:2308.01263; CC-BY-4.0): unsafe prompts, complied with and refused.

Five models' completions, each read by two annotators. Used are the unsafe prompts (their `type` begins with
`contrast`) and completions on which both annotators agree: full compliance is misbehavior, full refusal is
benign. Partial refusals are neither, and the safe prompts have no misbehavior: both are passed over.
"""
