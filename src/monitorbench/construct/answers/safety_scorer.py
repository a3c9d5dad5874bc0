"""A bag-of-words safety scorer, fitted on sources other than the one it is asked about.

It serves as one more opinion on noisy labels (`construct.answers.preference`). Promises: deterministic for
its records, no model weights, no network; its probabilities are compared with each other, not believed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from monitorbench.config.base import UserError
from monitorbench.records import Label, Message, Role
from monitorbench.upstream import LabelledResponse

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
