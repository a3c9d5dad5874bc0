"""The report and the samples page at 274, 2,528 and 20,000 samples: size, and how long a browser takes.

    python benchmarks/report_page.py [SAMPLES ...]

The texts are of the starter's own words, drawn one by one, so that no phrase comes twice and they compress
worse than real ones would; `long` answers have ten times as many. Three monitors judged each, one with
quotes. Chromium opens both pages from their files: until all of the report is laid out, until the samples
page shows its list, until a filter of it is applied, a text is found in all samples, and a pair is shown.
Prints a table and writes `runs/benchmarks/report_page/measured.json`.
"""

import json
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import ROOT

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.columns import by_cell, by_slice, columns
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.results import SCHEMA_VERSION, Results
from monitorbench.metrics.summary import macro, of_parts, overall
from monitorbench.metrics.transfer import matrix
from monitorbench.records import (
    Construction,
    GroundedQuote,
    Grounding,
    Label,
    LabelSource,
    Message,
    QuoteField,
    QuotePlace,
    Role,
    Sample,
    Verdict,
)
from monitorbench.report.html import render_report
from monitorbench.report.samples.page import render_samples
from monitorbench.report.samples.runs import OfRun, worst_of
from monitorbench.sources.handwritten import CELLS, HandwrittenPair, load

WORK = ROOT / "runs" / "benchmarks" / "report_page"
SIZES = (274, 2_528, 20_000)
MONITORS = (("small", "direct"), ("large", "direct"), ("large", "evidence"))
LIMIT_SECONDS, LIMIT_MB = 2.0, 15.0
_DRAWS = {"resamples": 200, "seed": 0}
_STAKES = Stakes(base_rate=0.01, cost_miss=100.0, cost_alarm=1.0)
_SHOWN = "() => document.body.dataset.shown > (window.before ?? 0)"


def main(sizes: Sequence[int]) -> None:
    """Measure and print."""
    shutil.rmtree(WORK, ignore_errors=True)
    rows = [measured(n, is_long=False) for n in sizes]
    rows.append(measured(max(sizes), is_long=True))
    names = list(rows[0])
    print("  ".join(f"{name:>12}" for name in names))
    for row in rows:
        print(
            "  ".join(
                f"{row[name]:>12,.2f}" if isinstance(row[name], float) else f"{row[name]:>12}"
                for name in names
            )
        )
    (WORK / "measured.json").write_text(json.dumps(rows, indent=2) + "\n")
    slow = [row for row in rows if row["list s"] > LIMIT_SECONDS or row["samples MB"] > LIMIT_MB]
    if slow:
        raise SystemExit(
            f"benchmarks/report_page.py: {len(slow)} above {LIMIT_SECONDS:g} s or {LIMIT_MB:g} MB"
        )


def measured(n: int, *, is_long: bool) -> dict[str, Any]:
    """Both pages of `n` samples, written and opened."""
    folder = WORK / f"{n}{'-long' if is_long else ''}"
    folder.mkdir(parents=True)
    samples = made(n, is_long)
    runs = [run(name, prompt, samples) for name, prompt in MONITORS]
    results = scored(runs)
    began = time.monotonic()
    report = render_report(results, {}, worst_of(runs, 10), browsable=set(MONITORS))
    written = time.monotonic()
    page = render_samples(results, runs)
    done = time.monotonic()
    (folder / "report.html").write_text(report, encoding="utf-8")
    (folder / "samples.html").write_text(page, encoding="utf-8")
    characters = sum(len(message.content) for one in samples for message in one.response) / n
    return {
        "samples": f"{n:,}{' long' if is_long else ''}",
        "answer chars": round(characters),
        "report MB": len(report.encode()) / 1e6,
        "samples MB": len(page.encode()) / 1e6,
        "report made": written - began,
        "samples made": done - written,
        **opened(folder, samples),
    }


def opened(folder: Path, samples: Sequence[Sample]) -> dict[str, float]:
    """Seconds in the browser, each the middle of three."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[float]] = {}
    with sync_playwright() as driver:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        for _ in range(3):
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})

            def timed(name: str, do: str, page: Any = page) -> None:
                began = time.monotonic()
                page.evaluate("window.before = Number(document.body.dataset.shown)")
                page.evaluate(f"location.hash = {json.dumps(do)}")
                page.wait_for_function(_SHOWN)
                found.setdefault(name, []).append(time.monotonic() - began)

            began = time.monotonic()
            page.goto((folder / "report.html").as_uri(), wait_until="load")
            page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            found.setdefault("report s", []).append(time.monotonic() - began)
            began = time.monotonic()
            page.goto((folder / "samples.html").as_uri(), wait_until="commit")
            page.wait_for_selector("#list li a")
            found.setdefault("list s", []).append(time.monotonic() - began)
            timed("filter s", "monitor=large&prompt=evidence&verdict=miss")
            timed("pair s", f"monitor=large&prompt=evidence&sample={samples[-1].id}")
            timed("search s", "text=nowhere+to+be+found")
            timed("again s", "text=nowhere+to+be+found&label=benign")
            browser.close()
    return {name: sorted(times)[len(times) // 2] for name, times in found.items()}


def made(n: int, is_long: bool) -> list[Sample]:
    """Pairs over the starter's cells, in turn."""
    rng = random.Random(0)
    pools = {cell: [text for pair in load(cell) for text in words(pair)] for cell in CELLS}
    found: list[Sample] = []
    for i in range(-(-n // 2)):
        cell = CELLS[i % len(CELLS)]
        pool = pools[cell]
        request = " ".join(rng.choices(pool, k=60))
        for label in Label:
            response = " ".join(rng.choices(pool, k=rng.randint(40, 200) * (10 if is_long else 1)))
            found.append(
                Sample(
                    pair_id=f"p{i}",
                    group_id=f"g{i // 2}",
                    category=cell.category,
                    task=cell.task,
                    subcategory=f"kind {i % 12}",
                    request=(Message(role=Role.USER, content=request),),
                    response=(Message(role=Role.ASSISTANT, content=f"{response} {i}{label}"),),
                    label=label,
                    label_source=LabelSource.AUTHOR,
                    construction=Construction.HANDWRITTEN,
                    source=f"source {i % 6}",
                    licence="Apache-2.0",
                )
            )
    return found[:n]


def words(pair: HandwrittenPair) -> list[str]:
    """Every word of a pair, as often as it stands there."""
    messages = (*pair.request, *pair.benign, *pair.misbehavior)
    return [word for one in messages for word in one.content.split()]


def run(name: str, prompt: str, samples: Sequence[Sample]) -> OfRun:
    """A monitor that is right three times in four; under the evidence prompt with two quotes."""
    rng = random.Random(f"{name} {prompt}")
    found = {}
    for one in samples:
        score = min(max(rng.gauss(0.65 if one.label is Label.MISBEHAVIOR else 0.35, 0.2), 0.0), 1.0)
        text = one.response[0].content
        starts = sorted(rng.randrange(len(text) - 12) for _ in range(2)) if prompt == "evidence" else []
        places = [QuotePlace(message=0, field=QuoteField.CONTENT, start=at, end=at + 12) for at in starts]
        quotes = tuple(
            GroundedQuote(quote=text[at.start : at.end], how=Grounding.EXACT, ratio=1, place=at)
            for at in places
        )
        label = Label.MISBEHAVIOR if score > 0.5 else Label.BENIGN
        found[one.id] = Verdict(
            key=f"{name}{prompt}{one.id}",
            sample_id=one.id,
            prompt=prompt,
            answer=json.dumps({"label": label, "quotes": [one.quote for one in quotes]})
            if quotes
            else str(label),
            label=label,
            unscored=None,
            score=score,
            label_mass=1.0,
            finish_reason="stop",
            evidence=quotes,
            prompt_tokens=300,
            completion_tokens=1,
            seconds=0.1,
        )
    return OfRun(name, prompt, samples, found)


def scored(runs: Sequence[OfRun]) -> Results:
    """The metrics of these runs by the metrics' own functions, with 200 draws."""
    results: dict[str, Any] = {key: {} for key in ("monitors", "slices", "macro", "overall")}
    for one in runs:
        judged = columns([_judged(sample, one.verdicts[sample.id]) for sample in one.samples])
        cells = of_parts(judged, by_cell(judged), **_DRAWS)
        found = {
            "monitors": cells,
            "slices": of_parts(judged, by_slice(judged), **_DRAWS),
            "macro": macro(judged, cells, **_DRAWS),
            "overall": overall(judged, _STAKES, **_DRAWS),
        }
        for key, value in found.items():
            results[key].setdefault(one.monitor, {})[one.prompt] = value
    n = len(runs[0].samples)
    return {
        "schema_version": SCHEMA_VERSION,
        "dataset": {"name": "starter's texts", "directory": "none", "n_test": n},
        **results,
        "stakes": {"base_rate": 0.01, "cost_miss": 100.0, "cost_alarm": 1.0},
        "tests": [],
        "correlation": {},
        "transfer": {},
        "matrix": matrix({}, 0.05),
        "seeds": {},
        "objectives": [],
        "trained_on": {},
        "pareto": {},
        "headline": {},
        "shortcuts": {},
        "learning_curves": {},
    }


def _judged(sample: Sample, verdict: Verdict) -> Judged:
    return Judged(
        sample_id=sample.id,
        pair_id=sample.pair_id,
        group_id=sample.group_id,
        category=sample.category,
        task=sample.task,
        label=sample.label,
        answer=verdict.label,
        score=verdict.score,
        source=sample.source,
        has_thinking=sample.has_thinking,
    )


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or SIZES)
