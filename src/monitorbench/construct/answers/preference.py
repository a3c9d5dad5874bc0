"""Safety in conversation: preference pairs in which the chosen answer is benign, the rejected one harmful.

Published preferences are noisy: in many rows both answers help, or neither does, or the order is reversed.
A row becomes a pair when it passes every filter below; the others are counted by the first that rejects them.

What the filters do to the data: they are lexical (`construct.answers.stance`), so what remains are pairs
whose answers say openly that they refuse, ask back or help. Silent help and polite harm are lost, and a bag
of words separates the labels better than in the raw data (`corpus.surface` measures it). The scorer, a bag of
words fitted on other sources, is a veto and no judge: it is deterministic for its records, and its
probabilities are compared with each other, not believed.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.config.sources import PreferenceFilter
from monitorbench.construct.answers.stance import looks_harmful, plain, stance
from monitorbench.construct.pair import Constructed, ConstructionVersion, make_pair
from monitorbench.records import Category, Cell, Construction, Label, LabelSource, Message, Role, Sample, Task
from monitorbench.upstream import LabelledResponse, Preference

Scorer = Callable[[Sequence[tuple[Message, ...]], Sequence[str]], NDArray[np.float64]]
"""Requests and one response to each -> P(misbehavior) of each, in [0, 1]."""


def fit_safety_scorer(sources: Mapping[str, Sequence[LabelledResponse]], *, seed: int) -> Scorer:
    """Fit TF-IDF and logistic regression; every source × label weighs the same, whatever its size.

    Reads the response's words alone: what was asked is the same on both sides of a pair.
    Raises `UserError` where one of the labels is missing.
    """
    # Slow to import, and most runs never come here.
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    rows = [(name, record) for name, records in sources.items() for record in records]
    labels = np.array([record.label is Label.MISBEHAVIOR for _, record in rows])
    if len(set(labels.tolist())) < 2:
        raise UserError(
            f"safety scorer: {', '.join(sources) or 'no source'}: not both labels there; add a source"
        )
    strata = [(name, record.label) for name, record in rows]
    sizes = Counter(strata)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=60_000)
    features = vectorizer.fit_transform([_said(record.response) for _, record in rows])
    model = LogisticRegression(C=3.0, max_iter=1000, random_state=seed)
    model.fit(
        features, labels, sample_weight=[len(rows) / (len(sizes) * sizes[stratum]) for stratum in strata]
    )

    def score(requests: Sequence[tuple[Message, ...]], responses: Sequence[str]) -> NDArray[np.float64]:
        if len(requests) != len(responses):
            raise ValueError(f"{len(requests)} requests, {len(responses)} responses")
        if not responses:
            return np.zeros(0)
        probabilities: NDArray[np.float64] = model.predict_proba(vectorizer.transform(list(responses)))[:, 1]
        return probabilities

    return score


def _said(response: Sequence[Message]) -> str:
    return "\n".join(message.content for message in response if message.role is Role.ASSISTANT)


CELL = Cell(Category.SAFETY_PERMISSION, Task.QA)

VERSION = ConstructionVersion("preference", 1)
_WORD = re.compile(r"\w+")


def preference_pairs(
    rows: Sequence[Preference],
    settings: PreferenceFilter,
    scorer: Scorer | None,
    *,
    source: str,
    licence: str,
) -> Constructed:
    """The rows that pass every filter, as pairs; `scorer=None` leaves that filter out.

    `rejected` counts each of the other rows once. Rows that open with the same human turn share a group.
    """
    rejected: Counter[str] = Counter()
    accepted: list[Preference] = []
    seen: set[str] = set()
    for row in rows:
        reason = _why_not(row, settings)
        if reason is None and (request := _asked(row)) in seen:
            reason = "request repeated"
        if reason is None:
            seen.add(request)
            accepted.append(row)
        else:
            rejected[reason] += 1
    if scorer is not None:
        accepted, vetoed = _agreed(accepted, settings, scorer)
        rejected.update({"scorer disagrees": vetoed} if vetoed else {})
    samples = [sample for row in accepted for sample in _pair(row, source, licence)]
    return Constructed(samples, rejected)


def _why_not(row: Preference, settings: PreferenceFilter) -> str | None:
    answers = (row.chosen.content, row.rejected.content)
    lengths = [len(answer.split()) for answer in answers]
    turns = [message.content for message in row.request if message.role is Role.USER]
    if min(lengths) < settings.min_answer_tokens:
        return "final turn too short"
    if max(lengths) + sum(len(m.content.split()) for m in row.request) > settings.max_dialogue_tokens:
        return "dialogue too long"
    if _similarity(*answers) > settings.max_answer_similarity:
        return "answers nearly the same"
    if not looks_harmful(turns):
        return "request not recognised as harmful"
    chosen, rejected = (stance(answer) for answer in answers)
    if not chosen.holds_back:
        return "chosen answer does not hold back"
    if not rejected.goes_along:
        return "rejected answer does not go along"
    if rejected.towards_harm - chosen.towards_harm < settings.lexical_margin:
        return "stances too close"
    return None


def _agreed(
    rows: Sequence[Preference], settings: PreferenceFilter, scorer: Scorer
) -> tuple[list[Preference], int]:
    requests = [row.request for row in rows]
    margins = scorer(requests, [row.rejected.content for row in rows]) - scorer(
        requests, [row.chosen.content for row in rows]
    )
    agreed = [row for row, margin in zip(rows, margins, strict=True) if margin >= settings.scorer_margin]
    return agreed, len(rows) - len(agreed)


def _similarity(one: str, other: str) -> float:
    a, b = (set(_WORD.findall(plain(text).lower())) for text in (one, other))
    return len(a & b) / len(a | b) if a | b else 1.0


def _asked(row: Preference) -> str:
    return "\n".join(f"{m.role}: {_normal(m.content)}" for m in row.request)


def _normal(text: str) -> str:
    return " ".join(_WORD.findall(plain(text).lower()))


def _pair(row: Preference, source: str, licence: str) -> tuple[Sample, Sample]:
    first = next((_normal(m.content) for m in row.request if m.role is Role.USER), row.id)
    return make_pair(
        f"{source}-{row.id}-preference",
        group_id=f"{source}-{hashlib.sha256(first.encode()).hexdigest()[:12]}",
        cell=CELL,
        subcategory="harmful_request",
        request=row.request,
        misbehavior=[row.rejected],
        benign=[row.chosen],
        label_source=LabelSource.PREFERENCE,
        construction=Construction.PREFERENCE,
        source=source,
        licence=licence,
    )
