"""Verdicts that are there already: whether a run still has all of its own, and what other runs have.

Other runs are only read. A verdict's key names all that decided it, so that one from another view, or from a
run that was stopped, is the one that judging the sample again would give.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitorbench.config.base import UserError
from monitorbench.judging.judge import Question
from monitorbench.records import TRANSPORT_FAILURES, Verdict
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.verdict_log import VERDICTS, VerdictLog, read_verdicts

_log = logging.getLogger(__name__)


def is_done(run: RunDirectory) -> bool:
    """Whether an evaluation finished and its log has as many lines as it had then.

    A person may have removed one that could not be read, as the log's own message advises.
    """
    if not run.done:
        return False
    results = read_manifest(run.path)["results"]
    log = run.path / VERDICTS
    lines = log.read_bytes().count(b"\n") if log.is_file() else 0
    return lines >= int(results["n_logged"])


def take_known_verdicts(
    known: Iterable[tuple[Path, Mapping[str, Verdict]]], questions: Sequence[Question], log: VerdictLog
) -> list[Question]:
    """Copy what other runs answered to these questions into `log`; returns the questions left.

    `known` is a run with its verdicts by key, as `read_known_verdicts` gives them.
    """
    unanswered = {question.key: question for question in questions}
    for run, verdicts in known:
        reused = [key for key in unanswered if key in verdicts]
        for key in reused:
            log.append(verdicts[key])
            del unanswered[key]
        if reused:
            _log.info("judging: %d of %d verdicts reused from %s", len(reused), len(questions), run)
        if not unanswered:
            break
    return list(unanswered.values())


def read_known_verdicts(runs: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Verdict]]]:
    """Read the verdicts of runs by key: judging again would give them. An unreadable run has none."""
    for run in runs:
        try:
            verdicts = read_verdicts(run / VERDICTS)
        except UserError as error:  # the stage that needs that run reports it
            _log.warning("judging: nothing is reused from a run that can't be read: %s", error)
            continue
        yield run, {row.key: row for row in verdicts if row.unscored not in TRANSPORT_FAILURES}


def runs_of_the_same_judge(run: RunDirectory, within: str = "") -> Iterator[Path]:
    """Folders beside the run whose manifest names the same judge and the same data.

    `within` is the part of the runs' identity that names them; empty: the identity itself.
    """

    def judge_and_data(identity: Mapping[str, Any]) -> list[Any]:
        fields = identity.get(within, {}) if within else identity
        return [fields.get(name) for name in ("schema_version", "data", "judge")]

    for manifest in sorted(run.path.parent.glob("*/manifest.json")):
        folder = manifest.parent
        if folder == run.path or not (folder / VERDICTS).is_file():
            continue
        try:
            identity = read_manifest(folder).get("identity", {})
        except UserError:  # `verify` says so; nothing here depends on it
            continue
        if judge_and_data(identity) == judge_and_data(run.identity):
            yield folder
