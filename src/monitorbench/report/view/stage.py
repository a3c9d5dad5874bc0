"""The stage `view`: serve the page of all runs on this machine until interrupted."""

import logging
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.config.study import Study
from monitorbench.judging.serving.served import free_port, terminable
from monitorbench.report.view.app import HOST, view_app
from monitorbench.report.view.rows import Runs

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
    _log.info("view: all runs of %s at http://%s:%d; Ctrl-C ends it", folder, HOST, port)
    with terminable():
        try:
            uvicorn.run(app, host=HOST, port=port, log_level="warning", server_header=False)
        except KeyboardInterrupt:
            _log.info("view: ending")
    return folder
