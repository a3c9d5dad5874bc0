"""To which of a router's adapters a sample goes: that of its category, its own or a predicted one.

Training on one category may hurt on another (negative transfer, AutoMonitor-Bench, 2601.05752); a specialist
for each is the answer that `monitor.router` builds. A benchmark knows a sample's category. A deployment has
to guess it: `by: predicted` does, by words, and its mistakes are part of what is measured.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import Engine, in_process
from monitorbench.config.monitor import Monitor
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.judging.identity import model_identity
from monitorbench.records import Sample

_MOST_OF_A_CATEGORY = 2000
"""Samples that the classifier learns from; thousands more take a minute and change little."""


class Route(NamedTuple):
    """Which category a sample is taken for."""

    category: Callable[[Sample], str]
    fitted_on: str
    """What names the samples that it was learnt from; empty where it is the sample's own."""

    def counts(self, samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
        """By the samples' own category how many were taken for which: `{own: {taken for: n}}`."""
        found: dict[str, dict[str, int]] = {}
        for (own, taken), n in Counter((one.category, self.category(one)) for one in samples).items():
            found.setdefault(own, {})[taken] = n
        return found


OWN_CATEGORY = Route(lambda sample: sample.category, "")


def predicted_category(train: Sequence[Sample], fitted_on: str) -> Route:
    """A category by the words of request and response: logistic regression on TF-IDF, fitted on `train`.

    Raises `ConfigError` where that holds a single category.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    seen: Counter[str] = Counter()
    some: list[Sample] = []
    for sample in train:
        if seen[sample.category] < _MOST_OF_A_CATEGORY:
            seen[sample.category] += 1
            some.append(sample)
    if len(seen) < 2:
        raise ConfigError(
            "monitor.router.by=predicted: the train split holds no two categories; expected several, or "
            "by=category"
        )
    words = TfidfVectorizer(sublinear_tf=True, max_features=20_000)
    classifier = make_pipeline(words, LogisticRegression(max_iter=1000))
    classifier.fit([_text(sample) for sample in some], [sample.category for sample in some])
    known: dict[str, str] = {}

    def category(sample: Sample) -> str:
        if sample.id not in known:
            known[sample.id] = str(classifier.predict([_text(sample)])[0])
        return known[sample.id]

    return Route(category, fitted_on)


def router_identity(monitor: Monitor, engine: Engine, route: Route | None) -> dict[str, Any]:
    """What of a router decides verdicts: each category's adapter, and how a category is told; else nothing.

    Raises `ConfigError` for a stage that routes nothing, and for an engine that has no adapters of ours;
    `UserError` for a missing adapter.
    """
    if monitor.router is None:
        return {}
    in_process(engine, "monitor.router")
    if route is None:
        raise ConfigError("monitor.router: only eval/evaluate.py sends samples by it; expected null")
    hashes = {
        category: model_identity(monitor.on(path), engine)["adapter"]
        for category, path in sorted(monitor.router.adapters.items())
    }
    return {"router": {"adapters": hashes, "by": monitor.router.by, "fitted_on": route.fitted_on}}


def _text(sample: Sample) -> str:
    return f"{request_text(sample)}\n{response_text(sample)}"
