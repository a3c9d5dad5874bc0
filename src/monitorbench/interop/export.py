"""The stage `export`: a dataset, or an evaluation's scores, in other people's formats."""

from pathlib import Path

from monitorbench.config.study import Study
from monitorbench.corpus.build import ensure
from monitorbench.corpus.export import push, write_chats


def export(study: Study) -> Path:
    """Export as `export.format` says; returns the directory with what was written.

    `inspect` is of the evaluation `study.run`, the others of the study's dataset. Raises what these raise.
    """
    match study.export.format:
        case "chat":
            return write_chats(study.prompt, study.dataset, ensure(study))
        case "hub":
            return push(study.export, study.dataset, ensure(study))
        case "inspect":
            from monitorbench.interop.inspect.write import write_log

            return write_log(study)
