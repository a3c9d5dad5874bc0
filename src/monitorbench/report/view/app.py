"""The page of all runs and the stage `view` that serves it: it reads a folder of runs and writes nothing.

Promises: it answers GET alone, and only to its own address, so that no page of another site reads it under
another name; a path leads to the pages of runs and to nothing else; the page of a run is shown apart from
this one, as if it were another site's. What the runs say is escaped, as on every page.
"""

import logging
from pathlib import Path

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
from monitorbench.report.template import policy, templates
from monitorbench.report.view.rows import Runs

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


_log = logging.getLogger(__name__)


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
