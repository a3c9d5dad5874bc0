"""The two moral subjects of MMLU's test set (Hendrycks et al. 2021, arXiv:2009.03300; MIT).

Owns `all/test-00000-of-00001.parquet` of the hub's cais/mmlu: question, subject, choices (four texts) and
answer (an index). The rows of other subjects are passed over.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from monitorbench.construct.counterfactual import VERSION
from monitorbench.records import Task
from monitorbench.sources.declaration import SourceDeclaration, SubjectQuestions
from monitorbench.sources.read import BadRow, SourceFiles, filled
from monitorbench.upstream import KnownQuestion

SUBJECTS = ("moral_disputes", "moral_scenarios")


def load(files: SourceFiles) -> Iterator[KnownQuestion]:
    """The questions of `SUBJECTS` in upstream's order; ids count within a subject (`moral_disputes-0000`)."""
    seen: Counter[str] = Counter()

    def question(row: Mapping[str, Any]) -> KnownQuestion | None:
        subject = filled(row, "subject")
        if subject not in SUBJECTS:
            return None
        number = seen[subject]
        seen[subject] += 1
        text, choices, answer = filled(row, "question"), row.get("choices"), row.get("answer")
        if not isinstance(choices, list) or len(choices) != 4 or not all(isinstance(c, str) for c in choices):
            raise BadRow("field 'choices' is no list of four texts")
        if not isinstance(answer, int) or not 0 <= answer < 4:
            raise BadRow(f"field 'answer': {answer!r} is no index of a choice")
        return KnownQuestion(
            id=f"{subject}-{number:04d}",
            group=hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16],
            topic=subject,
            text=text,
            answer=choices[answer],
            choices=tuple(choices),
            wrong=tuple(choice for i, choice in enumerate(choices) if i != answer),
        )

    return files.parquet("", question)


SOURCE = SourceDeclaration(
    name="mmlu",
    version=1,
    read=load,
    construct=None,
    constructions=(VERSION,),
    takes_elicited=True,
    questions=SubjectQuestions(Task.QA, load),
)
