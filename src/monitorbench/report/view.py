"""The page of all runs and the stage `view` that serves it: it reads a folder of runs and writes nothing.

Promises: it answers GET alone, and only to its own address, so that no page of another site reads it under
another name; a path leads to the pages of runs and to nothing else; the page of a run is shown apart from
this one, as if it were another site's. What the runs say is escaped, as on every page.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.judging.serving.connection import to_another_host
from monitorbench.judging.serving.served import free_port, terminable
from monitorbench.metrics.written import DASH, interval, rate
from monitorbench.report.so_far import Progress, SoFar, last_step
from monitorbench.report.tables.overall import OverallNumber
from monitorbench.report.template import policy, templates
from monitorbench.runs.listing import overall_numbers, overall_rates, short
from monitorbench.runs.run_folders import Run, age_in_words, runs_in

_log = logging.getLogger(__name__)
HOST = "127.0.0.1"
_SCRIPTS = ("sort.js", "view.js")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OF_A_RUN = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; sandbox allow-scripts"
)
"""Policy of a run's page beside its own: it may be somebody else's, so it reads nothing of this server."""
PAGES: Mapping[str, str] = {
    "report.html": "report",
    "samples.html": "samples",
    "recommendation.html": "recommendation",
    "control.html": "control",
}
"""Pages that stages write into their runs, and what a link to one says."""
_ID_DIGITS = 8
_LONGEST_ANSWER = 5_000
_METRICS = ("miss_rate", "false_alarm_rate", "auroc")


class RunRow(NamedTuple):
    """One run."""

    name: str
    id: str
    """The hash's first digits, by which settings name the run."""
    kind: str
    dataset: str
    split: str
    state: str
    age: str
    started: str
    progress: str
    """Progress of a running stage: `1,200 of 3,000`, `step 40, on validation`, `12 episodes`."""
    share_done: int | None
    """Percent of its samples that a running evaluation has judged."""
    numbers: list[OverallNumber]
    """Miss rate, false alarm rate, AUROC."""
    answer: str
    """Sentence or decision that a recommendation or a pilot came to."""
    pages: list[tuple[str, str]]
    """Address and words of a link to each of its pages."""


class Runs:
    """The runs of a folder; what was read of a finished one is kept until its manifest changes."""

    def __init__(self, folder: Path, datasets: Path) -> None:
        self.folder = folder
        self._datasets = datasets
        self._kept: dict[tuple[Path, int, bool], RunRow] = {}
        self._following: dict[Path, Progress] = {}

    def rows(self) -> list[RunRow]:
        """Read all runs, the newest first."""
        return [self._row(run) for run in runs_in(self.folder)]

    def page(self, kind: str, name: str, page: str) -> Path | None:
        """Find a page of a run; None for what is no run's page, or lies outside the folder of runs."""
        root = self.folder.resolve()
        if page not in PAGES or kind.startswith(".") or name.startswith("."):
            return None
        try:
            path = (self.folder / kind / name / page).resolve()
            is_inside = path.is_relative_to(root) and len(path.relative_to(root).parts) == 3
            return path if is_inside and path.is_file() else None
        except (OSError, ValueError):  # no name that a file can have
            return None

    def _row(self, run: Run) -> RunRow:
        key = (run.path, run.changed, run.state == "done")
        if run.state == "running":
            return self._read(run)
        if key not in self._kept:
            self._kept[key] = self._read(run)
        # Age and pages change while the manifest does not.
        return self._kept[key]._replace(age=age_in_words(run.started), pages=_pages(run))

    def _read(self, run: Run) -> RunRow:
        so_far = self._so_far(run)
        total = DASH if so_far.total is None else f"{so_far.total:,}"
        progress = "" if so_far.done is None else f"{so_far.done:,} of {total}"
        numbers = overall_numbers(run)
        if run.state == "running" and run.kind != "evaluate":
            progress, numbers = last_step(run)
        elif not numbers:
            rates = so_far if run.state == "running" else overall_rates(run, self._datasets)
            known = {name: getattr(rates, name, None) for name in _METRICS}
            numbers = {name: value for name, value in known.items() if value is not None}
        results: Any = run.manifest.get("results", {})
        return RunRow(
            name=run.title,
            id=run.id[:_ID_DIGITS],
            kind=run.kind,
            dataset=run.dataset,
            split=run.split,
            state=run.state,
            age=age_in_words(run.started),
            started="" if run.started is None else f"{run.started.timestamp():.0f}",
            progress=progress,
            share_done=100 * so_far.done // so_far.total
            if so_far.done is not None and so_far.total
            else None,
            numbers=[_shown(numbers, name) for name in _METRICS],
            answer=short(results.get("sentence") or results.get("decision") or "", _LONGEST_ANSWER),
            pages=_pages(run),
        )

    def _so_far(self, run: Run) -> SoFar:
        if run.kind != "evaluate" or run.state != "running":
            self._following.pop(run.path, None)
            return SoFar()
        if run.path not in self._following:
            self._following[run.path] = Progress(run, self._datasets)
        return self._following[run.path].look()


def _shown(known: Mapping[str, float], name: str) -> OverallNumber:
    if name not in known:
        return OverallNumber(DASH, "", None)
    bounds = [known[end] for end in (f"{name}_ci_low", f"{name}_ci_high") if end in known]
    return OverallNumber(rate(known[name]), interval(bounds), known[name])


def _pages(run: Run) -> list[tuple[str, str]]:
    address = f"run/{quote(run.kind)}/{quote(run.path.name)}"
    return [(f"{address}/{page}", words) for page, words in PAGES.items() if (run.path / page).is_file()]


def view_app(runs: Runs) -> ASGIApp:
    """Build the application that answers on a port of this machine."""
    scripts = [templates().get_template(name).render() for name in _SCRIPTS]
    own_policy = policy(*scripts)

    def overview(request: Request) -> Response:
        page = templates().get_template("view.html.j2")
        rows = runs.rows()
        text = page.render(
            policy=own_policy,
            rows=rows,
            folder=runs.folder.name,
            kinds=sorted({row.kind for row in rows}),
            is_running=any(row.state == "running" for row in rows),
            # Safe to put in as they are: files of ours.
            scripts=[Markup(script) for script in scripts],
        )
        return HTMLResponse(text, headers={**_HEADERS, "Content-Security-Policy": own_policy})

    def page_of_a_run(request: Request) -> Response:
        path = runs.page(**request.path_params)
        if path is None:
            return PlainTextResponse("no such page of a run", 404, headers=_HEADERS)
        headers = {**_HEADERS, "Content-Security-Policy": _OF_A_RUN}
        return HTMLResponse(path.read_bytes(), headers=headers)

    routes = [
        Route("/", overview, methods=["GET"]),
        Route("/run/{kind}/{name}/{page}", page_of_a_run, methods=["GET"]),
    ]
    return _OwnHostOnly(Starlette(routes=routes))


class _OwnHostOnly:
    """Refuses what was asked of another host: a name of somebody else's that leads to this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := to_another_host(Headers(scope=scope), {"localhost"})):
            await PlainTextResponse(refusal.error, refusal.status, headers=_HEADERS)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def view(study: Study) -> Path:
    """Serve all runs of `paths.runs`, read-only, until interrupted; returns that folder.

    Raises `UserError` where there is no such folder, or the port is taken.
    """
    import uvicorn

    folder = study.paths.runs
    if not folder.is_dir():
        raise UserError(f"paths.runs={folder}: no such folder; expected the folder that the stages write to")
    port = free_port(HOST, study.report.port, "report")
    app = view_app(Runs(folder, study.paths.data))
    _log.info("view: all runs of %s at http://%s:%d (Ctrl-C ends it)", folder, HOST, port)
    with terminable():
        try:
            uvicorn.run(app, host=HOST, port=port, log_level="warning", server_header=False)
        except KeyboardInterrupt:
            _log.info("view: ending")
    return folder
