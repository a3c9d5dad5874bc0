"""A monitor with a router as one judge: one engine, on which the adapters take turns."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from monitorbench.config.engine import LocalEngine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.engines.open import share_engine
from monitorbench.engines.stored.adapter import adapter_folder
from monitorbench.judging.identity import model_identity
from monitorbench.judging.judge import Judge, Question
from monitorbench.judging.local import TokenJudge
from monitorbench.judging.route import Route
from monitorbench.prompts.few_shot import Shots
from monitorbench.records import Sample, Verdict


class RouterJudge(Judge):
    """Each sample is judged with its category's adapter, or by the base where that has none."""

    def __init__(
        self, monitor: Monitor, engine: LocalEngine, prompt: Prompt, models: Path, route: Route, shots: Shots
    ) -> None:
        """Raises what `engines.open.share_engine` and `TokenJudge` raise."""
        super().__init__(prompt)
        given = monitor.router.adapters if monitor.router else {}
        folders = [folder for path in given.values() if (folder := adapter_folder(path))]
        shared = self.closing.enter_context(closing(share_engine(monitor, engine, models, folders)))

        def on(adapter: Path | None) -> TokenJudge:
            alone = monitor.on(adapter)
            model = shared.on(adapter_folder(adapter))
            return TokenJudge(model, prompt, alone, model_identity(alone, engine), shots)

        self._route, self._base = route, on(None)
        self._judges = {category: on(adapter) for category, adapter in given.items()}

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
