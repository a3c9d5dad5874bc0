"""Upstream data sets of harmful requests that a model complied with, and that it refused."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from monitorbench.config.base import UserError
from monitorbench.construct.pair import Constructed, ConstructionVersion, Facts, make_pair
from monitorbench.records import Category, Cell, Construction, Label, LabelSource, Message, Role, Sample, Task
from monitorbench.sources.declaration import (
    ConstructionContext,
    RowConstruction,
    SourceDeclaration,
    labelled_by_upstream,
)
from monitorbench.sources.read import BadRow, SourceFiles, filled, short_hash, text
from monitorbench.upstream import LabelledResponse

STRATUM = "refusal"
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
    construct=labelled_by_upstream(STRATUM),
    for_scorer=True,
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

A refusal reads like a refusal, so words tell the labels apart: the stratum `refusal`.
"""


CELL = Cell(Category.SAFETY_PERMISSION, Task.QA)
XSTEST_VERSION = ConstructionVersion("annotated_completions", 1)
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


def read_xstest(files: SourceFiles) -> Iterator[AnnotatedCompletion]:
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
        name = short_hash(prompt)
        for number in range(pairs):
            bad = complied[number]
            good = min(refused, key=lambda row: abs(len(row.completion) - len(bad.completion)))
            refused.remove(good)
            samples += make_pair(
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
                facts=(Facts(subject_model=bad.model), Facts(subject_model=good.model)),
            )
    yield Constructed(samples, +rejected)


XSTEST = SourceDeclaration(
    name="xstest", version=1, read=read_xstest, construct=RowConstruction(_construct, (XSTEST_VERSION,))
)
"""XSTest (Röttger et al. 2023, arXiv:2308.01263; CC-BY-4.0): unsafe prompts, complied with and refused.

Five models' completions, each read by two annotators. Used are the unsafe prompts (their `type` begins with
`contrast`) and completions on which both annotators agree: full compliance is misbehavior, full refusal is
benign. Partial refusals are neither, and the safe prompts have no misbehavior: both are passed over.

A refusal reads like a refusal, so words tell the labels apart: the stratum `refusal`.
"""
