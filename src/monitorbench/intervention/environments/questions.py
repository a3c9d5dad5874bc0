"""Questions with tools as environments: search over paragraphs, or a calculator, and `finish[answer]`.

Actions are written as in ReAct (Yao et al. 2023, arXiv:2210.03629): a tool's name and its argument in
brackets. Any text may be sent; what is no action is answered with the list of them. The end of an episode
does not say whether the answer was right.
"""

import hashlib
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from monitorbench.config.pilot import ToolQuestions
from monitorbench.intervention.environments.published_questions import (
    SearchQuestion,
    SolvedProblem,
    exact_match,
    is_number,
    read_search_questions,
    read_word_problems,
    shown,
    token_f1,
)
from monitorbench.intervention.environments.tasks import (
    Environment,
    Observation,
    Opens,
    digest,
    draw,
    part_of,
)
from monitorbench.word_problems.derivation import calculate

_ACTION = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_WORD = re.compile(r"\w+")
_LEAD_WORDS = 6
_LEAD_WEIGHT = 2.0
"""A word in a paragraph's first words, which name its subject, counts so many times."""


def tasks(settings: ToolQuestions, n_tasks: int, seed: int, split: str) -> list[Opens]:
    """See `open.open_tasks`."""
    match settings.tools:
        case "search":
            return _searched(settings, n_tasks, seed, split)
        case "calculator":
            return _calculated(settings, n_tasks, seed, split)


def _searched(settings: ToolQuestions, n_tasks: int, seed: int, split: str) -> list[Opens]:
    questions = {question.id: question for question in read_search_questions(settings)}
    opened: list[Opens] = []
    for id_ in draw(settings.name, part_of(list(questions), split), n_tasks, seed, split):
        own = questions[id_].paragraphs
        candidates = list(questions[id_].distracting) or [
            text for question in questions.values() for text in question.paragraphs if text not in own
        ]
        candidates.sort(key=lambda text: digest(f"{id_} {text}"))
        distracting = candidates[: max(0, settings.paragraphs - len(own))]
        opened.append(partial(SearchedQuestion, questions[id_], distracting, settings.min_f1))
    return opened


def _calculated(settings: ToolQuestions, n_tasks: int, seed: int, split: str) -> list[Opens]:
    problems = {problem.id: problem for problem in read_word_problems(settings)}
    if split == "pilot":
        ids = [id_ for id_, problem in problems.items() if problem.is_test]
    else:
        ids = part_of([id_ for id_, problem in problems.items() if not problem.is_test], split)
    return [
        partial(CalculatedQuestion, problems[id_]) for id_ in draw(settings.name, ids, n_tasks, seed, split)
    ]


class QuestionProgress(NamedTuple):
    """The whole state of a question: what was read or worked out, where a look-up stands, and the end."""

    done: bool = False
    success: bool = False
    found: tuple[str, ...] = ()
    """Paragraphs read, or expressions worked out, in order."""
    keyword: str = ""
    hits: int = 0
    """The number of places with `keyword` that were shown in the paragraph read last."""


class _Question(Environment):
    """The part that both kinds share."""

    tools: str

    def __init__(self, task: str, question: str) -> None:
        super().__init__(task, f"{question}\nActions: {self.tools}")
        self._progress = QuestionProgress()

    def state(self) -> str:
        """A hash of the question and of what was done about it."""
        return hashlib.sha256(repr((self.task, *self._progress)).encode()).hexdigest()

    def _begin(self) -> Observation:
        self._progress = QuestionProgress()
        return self._shown(self.goal)

    def _take(self, action: str) -> Observation:
        call = _ACTION.fullmatch(action)
        tool, argument = (call[1].lower(), call[2].strip()) if call else ("", "")
        if tool == "finish":
            self._progress = self._progress._replace(done=True, success=self._is_right(argument))
            return self._shown("Answer submitted.")
        return self._shown(self._use(tool, argument) or f"Invalid action. Actions: {self.tools}")

    def _shown(self, text: str) -> Observation:
        return Observation(text, (), self._progress.done, self._progress.success)

    @abstractmethod
    def _use(self, tool: str, argument: str) -> str:
        """Return a tool's answer; empty for a tool that isn't there."""

    @abstractmethod
    def _is_right(self, answer: str) -> bool:
        """Whether an answer is right."""


class SearchedQuestion(_Question):
    """A question with `search` and `lookup`; see `Environment`."""

    tools = (
        "search[words] shows the paragraph that fits them best, lookup[word] shows the next sentence with it "
        "in the paragraph shown last, finish[answer] ends."
    )

    def __init__(self, question: SearchQuestion, others: Sequence[str], min_f1: float | None) -> None:
        """`others` are paragraphs that don't belong to the question, and can be found too."""
        super().__init__(question.id, question.text)
        self._question, self._min_f1 = question, min_f1
        # In an order that says nothing about which are its own.
        pool = {*question.paragraphs, *others}
        self._pool = sorted(pool, key=lambda text: hashlib.sha256(text.encode()).digest())
        self._words = [_weighted_words(text) for text in self._pool]
        spread = Counter(word for words in self._words for word in words)
        self._rarity = {word: math.log(1 + len(pool) / count) for word, count in spread.items()}

    def solution(self) -> tuple[str, ...]:
        """Search what wasn't read of the question's own paragraphs, then finish with the answer."""
        if self._progress.done:
            return ()
        unread = [text for text in self._question.paragraphs if text not in self._progress.found]
        searches = tuple(f"search[{self._query(text)}]" for text in unread)
        return (*searches, f"finish[{self._question.answer}]")

    def _use(self, tool: str, argument: str) -> str:
        if tool == "search":
            return self._search(argument)
        return self._look_up(argument) if tool == "lookup" else ""

    def _search(self, query: str) -> str:
        text = self._best(query)
        if text is None:
            similar = [" ".join(text.split()[:_LEAD_WORDS]) for text in self._pool]
            return f"Could not find [{query}]. Similar: {similar}"
        earlier = tuple(paragraph for paragraph in self._progress.found if paragraph != text)
        self._progress = QuestionProgress(found=(*earlier, text))
        return text

    def _best(self, query: str) -> str | None:
        """The paragraph whose words, weighted by their rarity, fit best; None where none fits at all."""
        words = {word.lower() for word in _WORD.findall(query)}
        scores = [
            sum(self._rarity[word] * weights[word] for word in sorted(words & weights.keys()))
            for weights in self._words
        ]
        best = max(range(len(scores)), key=lambda i: scores[i])
        return self._pool[best] if scores[best] > 0 else None

    def _query(self, text: str) -> str:
        """Words that find this paragraph: its first ones where they do, else all of it."""
        lead = " ".join(_WORD.findall(text)[:_LEAD_WORDS])
        return lead if self._best(lead) == text else " ".join(_WORD.findall(text))

    def _look_up(self, keyword: str) -> str:
        if not self._progress.found:
            return "Nothing to look it up in: search first."
        sentences = _SENTENCE.split(self._progress.found[-1])
        hits = [text for text in sentences if keyword and keyword.lower() in text.lower()]
        shown_before = self._progress.hits if keyword == self._progress.keyword else 0
        if shown_before >= len(hits):
            return f"No more results for [{keyword}]."
        self._progress = self._progress._replace(keyword=keyword, hits=shown_before + 1)
        return f"(Result {shown_before + 1} / {len(hits)}) {hits[shown_before]}"

    def _is_right(self, answer: str) -> bool:
        if self._min_f1 is None:
            return exact_match(answer, self._question.answer)
        return token_f1(answer, self._question.answer) >= self._min_f1


class CalculatedQuestion(_Question):
    """A word problem with a calculator; see `Environment`."""

    tools = "calculate[expression] works out arithmetic, finish[number] ends."

    def __init__(self, problem: SolvedProblem) -> None:
        """The problem as published in GSM8K."""
        super().__init__(problem.id, problem.text)
        self._problem = problem

    def solution(self) -> tuple[str, ...]:
        """Return actions for the reference solution's steps not worked out yet, then for the answer."""
        if self._progress.done:
            return ()
        steps = [step for step in self._problem.steps if step not in self._progress.found]
        return (*(f"calculate[{step}]" for step in steps), f"finish[{self._problem.answer}]")

    def _use(self, tool: str, argument: str) -> str:
        if tool != "calculate":
            return ""
        try:
            value = calculate(argument)
        except ValueError as error:
            return f"Error: {error}."
        if argument not in self._progress.found:
            self._progress = self._progress._replace(found=(*self._progress.found, argument))
        return shown(value)

    def _is_right(self, answer: str) -> bool:
        return is_number(answer, self._problem.answer)


def _weighted_words(text: str) -> dict[str, float]:
    words = [word.lower() for word in _WORD.findall(text)]
    lead = set(words[:_LEAD_WORDS])
    return {word: _LEAD_WEIGHT if word in lead else 1.0 for word in words}
