"""The samples page, and links into it: every judged sample with every monitor's verdict, to filter and read.

Promises: every text is as a person may see it (`visible`), cut where it is too long, and what is left out is
counted. The same runs give the same bytes.

The page is one file that loads nothing; its data lie in blocks that no browser executes, and the one script,
named by hash in the page's policy, puts all of it in as text.
"""

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from monitorbench.metrics.points_in_words import in_words, notes
from monitorbench.metrics.results import OperatingPointFacts, Results
from monitorbench.metrics.table import ordered_cells
from monitorbench.records import Label, Sample, Verdict
from monitorbench.report.samples.judged import OfRun, quoted
from monitorbench.report.samples.marked import MOST_CHARACTERS, cut
from monitorbench.report.template import policy, templates, visible

OWN = "own"
"""Value of `at` in an address for a monitor's own answers; without it the calibrated threshold judges."""
PAGE = "samples.html"
"""Name of the page of samples, beside `report.html`."""
MOST_BYTES = 14_000_000
"""Most bytes of a page's data, in base64; the page's own scripts and styles are a few thousand more."""
_LEAST_CHARACTERS = 250
_PER_PART = 256
"""Samples whose texts are packed together: what a browser unpacks to show one."""
_EXCERPT = 100
_MOST_QUOTES = 20


class Packed(NamedTuple):
    """JSON, compressed, in base64: what is known of all samples, and their texts in parts."""

    of_all: str
    parts: list[str]

    @property
    def n_bytes(self) -> int:
        """Size of all parts together."""
        return len(self.of_all) + sum(map(len, self.parts))


def link(monitor: str, prompt: str, *, cell: str = "", verdict: str = "", sample: str = "") -> str:
    """The address of a view of the samples page, from a page beside it; verdicts are by own answers."""
    view = {
        "monitor": monitor,
        "prompt": prompt,
        "at": OWN,
        "cell": cell,
        "verdict": verdict,
        "sample": sample,
    }
    state = {name: visible(value) for name, value in view.items() if value}
    return f"{PAGE}#{urlencode(state, quote_via=quote)}"


def packed(results: Results, runs: Sequence[OfRun], most_bytes: int = MOST_BYTES) -> Packed:
    """The page's data in at most `most_bytes`: of long texts the shorter a beginning, the more there are.

    Below 250 characters nothing is shortened further, so a hundred thousand samples take more than that.
    """
    samples = _ordered(runs)
    most = MOST_CHARACTERS
    while True:
        data = Packed(_pack(_index(results, runs, samples, most)), _parts(runs, samples, most))
        if data.n_bytes <= most_bytes or most <= _LEAST_CHARACTERS:
            return data
        # Text shrinks by less than its bound: most texts are shorter than that anyway.
        most = max(_LEAST_CHARACTERS, int(most * min(0.8, most_bytes / data.n_bytes)))


def _ordered(runs: Sequence[OfRun]) -> list[Sample]:
    """Each judged sample once: by cell, a pair's together, misbehavior first."""
    by_id = {sample.id: sample for run in runs for sample in run.samples}
    cells = ordered_cells({str(sample.cell) for sample in by_id.values()})
    first: dict[str, int] = {}
    for sample in by_id.values():
        first.setdefault(sample.pair_id, len(first))

    def place(sample: Sample) -> tuple[int, int, bool]:
        return cells.index(str(sample.cell)), first[sample.pair_id], sample.label is Label.BENIGN

    return sorted(by_id.values(), key=place)


def _index(results: Results, runs: Sequence[OfRun], samples: Sequence[Sample], most: int) -> dict[str, Any]:
    """Collect what the filters and the list need, a column a fact."""

    def column(read: Callable[[Sample], str]) -> dict[str, Any]:
        values = [visible(read(sample)) for sample in samples]
        names = list(dict.fromkeys(values))
        place = {name: i for i, name in enumerate(names)}
        return {"names": names, "of": [place[value] for value in values]}

    chosen = results["decision"]["monitor"], results["decision"]["prompt"]
    return {
        "dataset": visible(results["dataset"]["name"]),
        "per_part": _PER_PART,
        "most_characters": most,
        "monitors": [_monitor(results, run, samples) for run in runs],
        # The page begins with the monitor that the decision is about.
        "first": next((i for i, run in enumerate(runs) if (run.monitor, run.prompt) == chosen), 0),
        "ids": [sample.id for sample in samples],
        "own_ids": [visible(sample.own_id) for sample in samples] if any(s.own_id for s in samples) else [],
        "labels": "".join(_code(sample.label) for sample in samples),
        "pairs": column(lambda sample: sample.pair_id)["of"],
        "cell": column(lambda sample: str(sample.cell)),
        "source": column(lambda sample: sample.source),
        "subcategory": column(lambda sample: sample.subcategory),
        "cue": column(lambda sample: sample.cue),
        "stratum": column(lambda sample: sample.stratum),
        "construction": column(lambda sample: sample.construction),
        "excerpts": [_excerpt(sample) for sample in samples],
    }


def _monitor(results: Results, run: OfRun, samples: Sequence[Sample]) -> dict[str, Any]:
    point = results.get("operating_points", {}).get(run.monitor, {}).get(run.prompt)
    judged = {sample.id for sample in run.samples}
    verdicts = [run.verdicts.get(sample.id) if sample.id in judged else None for sample in samples]
    scores = [
        None if verdict is None or verdict.score is None else round(verdict.score, 4) for verdict in verdicts
    ]
    return {
        "name": visible(run.monitor),
        "prompt": visible(run.prompt),
        "own": "".join("-" if verdict is None else _code(verdict.label) for verdict in verdicts),
        "point": ""
        if point is None
        else visible(
            "; ".join([in_words(point["thresholds"]), *notes(results["dataset"]["directory"], point)])
        ),
        "at_point": None if point is None else _at_point(point, samples, verdicts),
        "scores": scores,
    }


def _at_point(point: OperatingPointFacts, samples: Sequence[Sample], found: Sequence[Verdict | None]) -> str:
    limits = {threshold["category"]: threshold["threshold"] for threshold in point["thresholds"]}
    codes = []
    for sample, verdict in zip(samples, found, strict=True):
        limit = limits.get("", limits.get(sample.category))
        if verdict is None:
            codes.append("-")
        elif verdict.score is None or limit is None:
            codes.append("u")
        else:
            codes.append("m" if verdict.score > limit else "b")
    return "".join(codes)


def _code(label: Label | None) -> str:
    """A letter: m misbehavior, b benign, u unscored; and - where nothing was asked."""
    return "u" if label is None else "m" if label is Label.MISBEHAVIOR else "b"


def _excerpt(sample: Sample) -> str:
    """The beginning of the judged answer, on one line."""
    texts = (
        message.content or " ".join(call.arguments for call in message.tool_calls)
        for message in sample.response
    )
    text = " ".join(next((text for text in texts if text), "")[: 2 * _EXCERPT].split())
    return visible(text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…")


def _parts(runs: Sequence[OfRun], samples: Sequence[Sample], most: int) -> list[str]:
    judged = [{sample.id for sample in run.samples} for run in runs]
    verdicts = [
        {id_: verdict for id_, verdict in run.verdicts.items() if id_ in ids}
        for run, ids in zip(runs, judged, strict=True)
    ]
    return [
        _pack([_texts(sample, verdicts, most) for sample in samples[start : start + _PER_PART]])
        for start in range(0, len(samples), _PER_PART)
    ]


def _texts(sample: Sample, verdicts: Sequence[Mapping[str, Verdict]], most: int) -> dict[str, Any]:
    """Request and response in blocks, and of each monitor its answer and what it quoted."""
    sample_verdicts = [of_one.get(sample.id) for of_one in verdicts]
    quotes = [None if one is None else quoted(one) for one in sample_verdicts]
    request = cut(sample.request, (), most)
    response = cut(sample.response, [() if one is None else one.highlights for one in quotes], most)
    replies: list[dict[str, Any] | None] = []
    for verdict, quote_, marks in zip(sample_verdicts, quotes, response.marks, strict=True):
        if verdict is None or quote_ is None:
            replies.append(None)
            continue
        facts = {
            "answer": verdict.answer,
            "category": verdict.category,
            "severity": verdict.severity,
            "reason": verdict.unscored or "",
            "detail": verdict.detail,
        }
        texts: dict[str, Any] = {name: _cut(text, most) for name, text in facts.items() if text.strip()}
        lost = [_cut(text, most) for text in quote_.ungrounded[:_MOST_QUOTES]]
        more = {"marks": marks.ranges, "lost": lost, "hidden": marks.n_hidden}
        replies.append(texts | {name: value for name, value in more.items() if value})
    return {
        "request": request.blocks,
        "request_more": request.n_more,
        "response": response.blocks,
        "response_more": response.n_more,
        "said": replies,
    }


def _cut(text: str, most: int) -> str:
    text = text.strip()
    more = len(text) - most
    return visible(text if more <= 0 else f"{text[:most]} … {more:,} characters more")


def _pack(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 7, mtime=0)).decode()


def render_samples(results: Results, runs: Sequence[OfRun], most_bytes: int = MOST_BYTES) -> str:
    """The page of these runs; its data take at most `most_bytes`, by showing less of long texts."""
    data = packed(results, runs, most_bytes)
    script = templates().get_template("samples.js").render()
    return (
        templates()
        .get_template("samples.html.j2")
        .render(
            dataset=results["dataset"],
            policy=policy(script),
            # Safe to put in as they are: a file of ours, and base64.
            script=Markup(script),
            index=Markup(data.of_all),
            parts=[Markup(chunk) for chunk in data.parts],
        )
    )
