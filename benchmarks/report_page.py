"""The report and the samples page at 274, 2,528 and 20,000 samples: size, and how long a browser takes.

The texts are of the starter's own words, drawn one by one, so that no phrase comes twice and they compress
worse than real ones would; `long` answers have ten times as many. Three monitors judged each, one with
quotes. Chromium opens both pages from their files: until all of the report is laid out, until the samples
page shows its list, until a filter of it is applied, a text is found in all samples, and a pair is shown; and
as `monitorbench view` serves them, until its table of runs is laid out, and until its report is.
The alternative that the ratios compare with is a page of the least size: how the times grow with it.
"""

import json
import random
import shutil
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import uvicorn
from playwright.sync_api import sync_playwright

from benchmarks.judged import sample
from benchmarks.measuring import Ratio, Result, composed, timed
from monitorbench import records
from monitorbench.config.deployment import Recommend
from monitorbench.config.evaluation import Stakes
from monitorbench.judging.serving.served import free_port
from monitorbench.metrics.choice import ShortcutsFacts
from monitorbench.metrics.columns import columns
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.results import SCHEMA_VERSION, Results
from monitorbench.metrics.summary import add_numbers
from monitorbench.metrics.table import Table
from monitorbench.metrics.words import add_corrected
from monitorbench.records import Label, Sample
from monitorbench.report.samples.browsable import render_samples
from monitorbench.report.samples.judged import OfRun, worst_of
from monitorbench.report.view import HOST, Runs, view_app
from monitorbench.report.write import render_report
from monitorbench.runs.directory import RunDirectory
from monitorbench.scoring.recommendation.assemble import assembled
from monitorbench.scoring.recommendation.candidates import contender
from monitorbench.scoring.recommendation.deployment import Deployment
from monitorbench.sources.handwritten import CELLS, load

MONITORS = (("small", "direct"), ("large", "direct"), ("large", "evidence"))
LIMIT_SECONDS, LIMIT_MB = 2.0, 15.0
_STAKES = Stakes(base_rate=0.01, cost_miss=100.0, cost_alarm=1.0)
_SHOWN = "() => document.body.dataset.shown > (window.before ?? 0)"


def main(work: Path, *, sizes: str) -> Result:
    """Write and open the pages of each size, and of long answers at the largest."""
    numbers = [int(size) for size in sizes.split(",")]
    rows = {f"{n:,} samples": _measure(work / str(n), n, is_long=False) for n in numbers}
    longest = f"{max(numbers):,} samples, long"
    rows[longest] = _measure(work / "long", max(numbers), is_long=True)
    first = next(iter(rows.values()))
    ratios = {
        "slowest list, s": Ratio(max(row["list s"] for row in rows.values()), most=LIMIT_SECONDS),
        "largest samples page, MB": Ratio(max(row["samples MB"] for row in rows.values()), most=LIMIT_MB),
    }
    for key in ("report s", "list s", "search s"):
        ratios[f"{key}, longest over smallest page"] = Ratio(rows[longest][key] / first[key])
    return Result(rows, ratios)


def _measure(folder: Path, n: int, *, is_long: bool) -> dict[str, float]:
    """Write and open both pages of `n` samples."""
    samples = _samples(n, is_long)
    runs = [_run(name, prompt, samples) for name, prompt in MONITORS]
    results = _results(runs)
    browsable = set(MONITORS)
    report_s, report = timed(lambda: render_report(results, {}, worst_of(runs, 10), browsable=browsable))
    samples_s, page = timed(lambda: render_samples(results, runs))
    run = RunDirectory(folder / "evaluate", "pages", {"samples": n})
    with run.recording(composed("report", ["run=none"])):
        (run.path / "report.html").write_text(report, encoding="utf-8")
        (run.path / "samples.html").write_text(page, encoding="utf-8")
    return {
        "answer chars": sum(len(m.content) for one in samples for m in one.response) / n,
        "report MB": len(report.encode()) / 1e6,
        "samples MB": len(page.encode()) / 1e6,
        "report made s": report_s,
        "samples made s": samples_s,
        **_opened(run.path, samples[-1].id),
    }


@contextmanager
def _viewed(folder: Path) -> Iterator[str]:
    """Serve a folder of runs as `monitorbench view` does; yields the address."""
    config = uvicorn.Config(view_app(Runs(folder, folder)), port=free_port(HOST, 0), log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://{HOST}:{config.port}/"
    finally:
        server.should_exit = True
        thread.join()


def _opened(folder: Path, sample_id: str) -> dict[str, float]:
    """Seconds in the browser, each the middle of three."""
    seconds: dict[str, list[float]] = {}
    with sync_playwright() as driver, _viewed(folder.parents[1]) as address:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        for _ in range(3):
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            began = time.monotonic()
            page.goto((folder / "report.html").as_uri(), wait_until="load")
            page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            seconds.setdefault("report s", []).append(time.monotonic() - began)
            began = time.monotonic()
            page.goto((folder / "samples.html").as_uri(), wait_until="commit")
            page.wait_for_selector("#list li a")
            seconds.setdefault("list s", []).append(time.monotonic() - began)
            for name, place in (
                ("filter s", "monitor=large&prompt=evidence&verdict=miss"),
                ("pair s", f"monitor=large&prompt=evidence&sample={sample_id}"),
                ("search s", "text=nowhere+to+be+found"),
                ("again s", "text=nowhere+to+be+found&label=benign"),
            ):
                began = time.monotonic()
                page.evaluate("window.before = Number(document.body.dataset.shown)")
                page.evaluate(f"location.hash = {json.dumps(place)}")
                page.wait_for_function(_SHOWN)
                seconds.setdefault(name, []).append(time.monotonic() - began)
            for name, place in (
                ("view s", ""),
                ("viewed report s", f"run/evaluate/{folder.name}/report.html"),
            ):
                began = time.monotonic()
                page.goto(f"{address}{place}", wait_until="load")
                seconds.setdefault(name, []).append(time.monotonic() - began)
            browser.close()
    return {name: statistics.median(times) for name, times in seconds.items()}


def _samples(n: int, is_long: bool) -> list[Sample]:
    """Draw pairs over the starter's cells, in turn, from the words of their pairs."""
    rng = random.Random(0)
    pools: dict[Any, list[str]] = {cell: [] for cell in CELLS}
    for cell, pool in pools.items():
        for pair in load(cell):
            messages = (*pair.request, *pair.benign, *pair.misbehavior)
            pool += [word for message in messages for word in message.content.split()]
    samples: list[Sample] = []
    for i in range(-(-n // 2)):
        cell = CELLS[i % len(CELLS)]
        request = " ".join(rng.choices(pools[cell], k=60))
        for label in Label:
            n_words = rng.randint(40, 200) * (10 if is_long else 1)
            response = f"{' '.join(rng.choices(pools[cell], k=n_words))} {i}{label}"
            samples.append(
                sample(
                    f"p{i}",
                    response,
                    label,
                    request=request,
                    group=f"g{i // 2}",
                    cell=cell,
                    subcategory=f"kind {i % 12}",
                    source=f"source {i % 6}",
                )
            )
    return samples[:n]


def _run(name: str, prompt: str, samples: Sequence[Sample]) -> OfRun:
    """Judge as a monitor that is right three times in four; under the evidence prompt with two quotes."""
    rng = random.Random(f"{name} {prompt}")
    verdicts = {}
    for one in samples:
        score = min(max(rng.gauss(0.65 if one.label is Label.MISBEHAVIOR else 0.35, 0.2), 0.0), 1.0)
        text = one.response[0].content
        starts = sorted(rng.randrange(len(text) - 12) for _ in range(2)) if prompt == "evidence" else []
        quotes = []
        for start in starts:
            end, content = start + 12, records.QuoteField.CONTENT
            place = records.Span(message=0, field=content, start=start, end=end)
            exact = records.Grounding.EXACT
            quotes.append(records.GroundedQuote(quote=text[start:end], how=exact, ratio=1, place=place))
        label = Label.MISBEHAVIOR if score > 0.5 else Label.BENIGN
        answer = json.dumps({"label": label, "quotes": [quote.quote for quote in quotes]})
        verdicts[one.id] = records.Verdict(
            key=f"{name}{prompt}{one.id}",
            sample_id=one.id,
            prompt=prompt,
            answer=answer if quotes else str(label),
            label=label,
            unscored=None,
            score=score,
            label_mass=1.0,
            finish_reason="stop",
            evidence=tuple(quotes),
            prompt_tokens=300,
            completion_tokens=1,
            seconds=0.1,
        )
    return OfRun(name, prompt, samples, verdicts)


def _results(runs: Sequence[OfRun]) -> Results:
    """Compute the metrics of these runs by the metrics' own functions."""
    results: dict[str, Any] = {key: {} for key in Results.__required_keys__} | {"table": Table()}
    candidates = []
    for run in runs:
        judged = columns([_judged(one, run.verdicts[one.id]) for one in run.samples])
        curves = add_numbers(results["table"], run.monitor, run.prompt, judged, _STAKES)
        results["curves"].setdefault(run.monitor, {})[run.prompt] = curves
        candidates.append(
            contender(
                run.monitor,
                run.prompt,
                judged,
                judged,
                promise=None,
                budget=None,
                unscored="wrong",
                limits={},
            )
        )
    n = len(candidates)
    decided = assembled(
        candidates,
        [],
        [None] * n,
        [None] * n,
        Deployment(_STAKES, Recommend(), 0.05, n),
        ShortcutsFacts(checked=False, fitted_on="", reason="none are fitted here", n_test=0, reach=[]),
        None,
        0,
        data="starter",
        positive_means="misbehavior",
        kept=[None] * n,
        is_calibrated=False,
    )
    results["decision"] = decided
    dataset = {"name": "starter's texts", "directory": "none", "n_test": len(runs[0].samples)}
    results |= {"schema_version": SCHEMA_VERSION, "dataset": dataset, "objectives": []}
    results |= {"stakes": _STAKES.model_dump(), "matrix": add_corrected(Table(), [], 0.05)}
    return cast(Results, results)


def _judged(one: Sample, verdict: records.Verdict) -> Judged:
    return Judged(
        sample_id=one.id,
        pair_id=one.pair_id,
        group_id=one.group_id,
        category=one.category,
        task=one.task,
        label=one.label,
        answer=verdict.label,
        score=verdict.score,
        source=one.source,
        has_thinking=one.has_thinking,
    )
