"""A monitor with a router as one `PromptedModel`: one engine, on which the adapters take turns."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from monitorbench.config.engine import LocalEngine
from monitorbench.config.monitor import Monitor, Prompt
from monitorbench.engines.open import share_engine
from monitorbench.engines.protocol import Reply
from monitorbench.engines.stored.adapter import adapter_folder
from monitorbench.judging.identity import model_identity
from monitorbench.judging.local import LocalPrompt
from monitorbench.judging.prompted import Question, Reading
from monitorbench.judging.route import Route
from monitorbench.records import Sample


class RoutedPrompt:
    """A `PromptedModel`; what has no adapter of its category is judged by the base."""

    def __init__(
        self, monitor: Monitor, engine: LocalEngine, prompt: Prompt, models: Path, route: Route
    ) -> None:
        """Raises what `engines.open.share_engine` and `LocalPrompt` raise."""
        given = monitor.router.adapters if monitor.router else {}
        folders = [folder for path in given.values() if (folder := adapter_folder(path))]
        self._shared = share_engine(monitor, engine, models, folders)

        def on(adapter: Path | None) -> LocalPrompt:
            alone = monitor.on(adapter)
            model = self._shared.model(adapter_folder(adapter))
            return LocalPrompt(model, prompt, alone, model_identity(alone, engine))

        self.prompt, self._route, self._base = prompt, route, on(None)
        self._models = {category: on(adapter) for category, adapter in given.items()}

    def question(self, sample: Sample, shots: Sequence[Sample] = ()) -> Question:
        """See `PromptedModel.question`; the verdict's key is that of the adapter that judges."""
        return self._of(sample).question(sample, shots)

    def prepare(self, first: Question) -> float | None:
        """See `PromptedModel.prepare`: of the first question's adapter; the others' come in `replies`."""
        return self._of(first.sample).prepare(first)

    def replies(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """See `PromptedModel.replies`: one adapter after another, each checked on its first question."""
        groups: dict[int, tuple[LocalPrompt, list[int]]] = {}
        for index, question in enumerate(questions):
            model = self._of(question.sample)
            groups.setdefault(id(model), (model, []))[1].append(index)
        for model, indices in groups.values():
            model.prepare(questions[indices[0]])
            for at, reply in model.replies([questions[index] for index in indices]):
                yield indices[at], reply

    def read(self, reply: Reply) -> Reading:
        """See `PromptedModel.read`: prompt and tokenizer are the same for all."""
        return self._base.read(reply)

    def word_logprobs(self, reply: Reply) -> Mapping[str, float]:
        """See `PromptedModel.word_logprobs`."""
        return self._base.word_logprobs(reply)

    def close(self) -> None:
        """Give back the engine's memory."""
        self._shared.close()

    def _of(self, sample: Sample) -> LocalPrompt:
        return self._models.get(self._route.category(sample), self._base)
