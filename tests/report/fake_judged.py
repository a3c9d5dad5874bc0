"""Runs as the samples page reads them: pairs of hostile text, judged by two monitors that quote and err."""

import random
from collections.abc import Sequence

from fake_results import BASE
from fake_worst import LONG, sample, verdict
from hostile import HOSTILE

from monitorbench.records import GroundedQuote, Grounding, Label, QuoteField, Sample, Span
from monitorbench.report.samples.judged import OfRun


def fake_samples(n_pairs: int = 12) -> list[Sample]:
    """Pairs over two cells, some long, some with thinking; of one cell with another source and a cue."""
    cued = {"source": f"other {HOSTILE}", "cue": "user_opinion", "construction": "cue"}
    found = []
    for cell in (0, 3):
        for i in range(n_pairs):
            for label in Label:
                text = f"{label} {LONG if i % 5 == 0 else ''}{HOSTILE} 😀"
                fields = sample(i, label, text, "A trace." if i % 2 else "", cell).model_dump(exclude={"id"})
                changed = {"subcategory": f"kind {i % 3}"} | (cued if cell else {})
                found.append(Sample.model_validate(fields | changed))
    return found


def quote(text: str, start: int, end: int) -> GroundedQuote:
    place = Span(message=0, field=QuoteField.CONTENT, start=start, end=end)
    return GroundedQuote(quote=text, how=Grounding.EXACT, ratio=1, place=place)


def fake_runs(samples: Sequence[Sample] | None = None) -> list[OfRun]:
    """Of the base: everything under the direct prompt; with quotes the first half under the evidence one."""
    samples = fake_samples() if samples is None else samples
    rng = random.Random(0)
    answers: list[Label | None] = [*Label, *Label, None]
    direct = {}
    for one in samples:
        answer = rng.choice(answers)
        direct[one.id] = verdict(one, answer, None if rng.random() < 0.1 else rng.random())
    half = samples[: len(samples) // 2]
    evidence = {}
    for one in half:
        said = verdict(one, rng.choice([*Label]), rng.random())
        text = one.response[0].content
        lost = GroundedQuote(quote=f"lost {HOSTILE}", how=Grounding.NONE, ratio=0, place=None)
        found = (quote(text[3:30], 3, 30), quote(text[20:40], 20, 40), lost)
        evidence[one.id] = said.model_copy(update={"evidence": found})
    return [OfRun(BASE, "direct", samples, direct), OfRun(BASE, "evidence", half, evidence)]
