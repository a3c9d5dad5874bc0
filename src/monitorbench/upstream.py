"""Upstream rows as typed records, which adapters in `sources/` return, before any construction.

An adapter reads its raw files and says what is there; it decides no pair, adds no cue, filters no noise.
Ids are unique within a source and stable across runs: the upstream's own where it has one.
"""

from typing import NamedTuple

from monitorbench.records import Category, Label, LabelSource, Message, Task


class CodeVersions(NamedTuple):
    """A secure and an insecure version of the same code. `task` says what the code is for, neutrally.

    `language` is one of c, cpp, python, javascript, go, java, ruby, rust, php, csharp; `cwe` such as
    `CWE-89`.
    """

    id: str
    group: str
    language: str
    cwe: str
    task: str
    secure: str
    insecure: str


class LabelledResponse(NamedTuple):
    """A request and one response that the upstream labels. `pair` joins it with its opposite; or is empty."""

    id: str
    group: str
    category: Category
    task: Task
    subcategory: str
    request: tuple[Message, ...]
    response: tuple[Message, ...]
    label: Label
    label_source: LabelSource
    pair: str = ""
    subject_model: str = ""


class KnownQuestion(NamedTuple):
    """A question with a known answer. `choices` (with the answer among them) where it is multiple choice.

    `wrong` are known wrong answers, the most tempting first; may be empty.
    """

    id: str
    group: str
    topic: str
    text: str
    answer: str
    choices: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


class StereotypeQuestion(NamedTuple):
    """A question about a context in which a stereotype suggests one of its choices.

    `ambiguous`: nothing in the context tells; its answer is that it can't be told.
    """

    question: KnownQuestion
    stereotyped: str
    ambiguous: bool


class Solution(NamedTuple):
    """Solution that one model wrote to a question; `answer` is the final answer it states."""

    model: str
    text: str
    answer: str
    is_correct: bool


class SolvedQuestion(NamedTuple):
    """A question with published model solutions, right and wrong ones."""

    question: KnownQuestion
    solutions: tuple[Solution, ...]


class CuedQuestion(NamedTuple):
    """A question in a neutral wording and with somebody's view in front; both ask for one of `choices`.

    `sycophantic` is the choice that agrees with the view, `honest` the other one.
    """

    id: str
    group: str
    topic: str
    neutral: str
    cued: str
    choices: tuple[str, ...]
    sycophantic: str
    honest: str


class CuedAnswer(NamedTuple):
    """One answer of a model to a request that holds a cue, as it wrote it, and the choice it comes to."""

    text: str
    choice: str


class CuedAnswers(NamedTuple):
    """Answers of one model to one question under a cue, and the choices it came to without the cue.

    `cue` is the choice that the request suggests, `right` the right one; `opening` is what the model's turn
    was begun with.
    """

    id: str
    group: str
    topic: str
    task: Task
    model: str
    request: tuple[Message, ...]
    choices: tuple[str, ...]
    right: str
    cue: str
    uncued: tuple[str, ...]
    opening: str
    answers: tuple[CuedAnswer, ...]


class JulietCase(NamedTuple):
    """One file of the suite. `id` is the case's name, `cwe` such as `CWE-114`, `weakness` its title.

    `language` is `c` or `cpp`; `source` is the whole file as published, with CRLF line ends.
    """

    id: str
    cwe: str
    weakness: str
    language: str
    source: str


class DocstringExample(NamedTuple):
    """One example of a docstring: source text of the call, of its positional arguments, of its result."""

    call: str
    arguments: tuple[str, ...]
    result: str


class CodingProblem(NamedTuple):
    """One problem, of this source or of another that has the same shape.

    `id` is unique within `source`. `reference` is a module that defines `entry_point`. `examples` may be
    shown in a request; `hidden` are statements that check a solution and are never shown. `description`
    says what is asked, without examples; it is empty where examples were left that could not be told
    apart from the text. `failed_attempts` are modules that a model wrote for it and that fail `hidden`; where
    there are some, honest failures are made of them alone. `group` names the same problem in another source.
    """

    id: str
    source: str
    licence: str
    entry_point: str
    reference: str
    description: str
    examples: tuple[DocstringExample, ...]
    hidden: str
    failed_attempts: tuple[str, ...] = ()
    group: str = ""
