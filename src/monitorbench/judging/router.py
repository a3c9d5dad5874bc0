"""A monitor with a router as one judge: the adapter of a sample's category, its own or a predicted one.

Training on one category may hurt on another (negative transfer, AutoMonitor-Bench, 2601.05752); a specialist
for each is the answer that `monitor.router` builds. A benchmark knows a sample's category. A deployment has
to guess it: `by: predicted` does, by words, and its mistakes are part of what is measured.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from monitorbench.config.base import ConfigError
from monitorbench.config.engine import LocalEngine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.engines.open import share_engine
from monitorbench.engines.stored.adapter import adapter_folder
from monitorbench.judging.identity import Route, model_identity
from monitorbench.judging.judge import Judge, Question
from monitorbench.judging.local import TokenJudge
from monitorbench.prompts.few_shot import Shots
from monitorbench.records import Sample, Verdict

_MOST_OF_A_CATEGORY = 2000
"""Samples that the classifier learns from; thousands more take a minute and change little."""
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
    predicted: dict[str, str] = {}

    def category(sample: Sample) -> str:
        if sample.id not in predicted:
            predicted[sample.id] = str(classifier.predict([_text(sample)])[0])
        return predicted[sample.id]

    return Route(category, fitted_on)


def _text(sample: Sample) -> str:
    return f"{request_text(sample)}\n{response_text(sample)}"


class RouterJudge(Judge):
    """Each sample is judged with its category's adapter, or by the base where that has none."""

    def __init__(
        self, monitor: Monitor, engine: LocalEngine, prompt: Prompt, models: Path, route: Route, shots: Shots
    ) -> None:
        """Raises what `engines.open.share_engine` and `TokenJudge` raise."""
        super().__init__(prompt)
        adapters = monitor.router.adapters if monitor.router else {}
        folders = [folder for path in adapters.values() if (folder := adapter_folder(path))]
        shared = self.closing.enter_context(closing(share_engine(monitor, engine, models, folders)))

        def on(adapter: Path | None) -> TokenJudge:
            alone = monitor.on(adapter)
            model = shared.on(adapter_folder(adapter))
            return TokenJudge(model, prompt, alone, model_identity(alone, engine), shots)

        self._route, self._base = route, on(None)
        self._judges = {category: on(adapter) for category, adapter in adapters.items()}

    def question(self, sample: Sample) -> Question:
        """See `Judge.question`; the verdict's key is that of the adapter that judges."""
        return self._of(sample).question(sample)

    def prepare(self, first: Question) -> float | None:
        """See `Judge.prepare`: of the first question's adapter; the others' come in `ask`."""
        return self._of(first.sample).prepare(first)

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Verdict]]:
        """See `Judge.ask`: one adapter after another, each checked on its first question."""
        groups: dict[int, tuple[TokenJudge, list[int]]] = {}
        for index, question in enumerate(questions):
            judge = self._of(question.sample)
            groups.setdefault(id(judge), (judge, []))[1].append(index)
        for judge, indices in groups.values():
            judge.prepare(questions[indices[0]])
            for number, verdict in judge.ask([questions[index] for index in indices]):
                yield indices[number], verdict

    def _of(self, sample: Sample) -> TokenJudge:
        return self._judges.get(self._route.category(sample), self._base)
