"""Verdicts that are there already: whether a run still has all of its own, and what other runs have.

Other runs are only read. A verdict's key names all that decided it, so that one from another view, or from a
run that was stopped, is the one that judging the sample again would give.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from monitorbench.config.base import UserError
from monitorbench.judging.judge import Question
from monitorbench.records import TRANSPORT_FAILURES
from monitorbench.runs.directory import RunDirectory, read_manifest
from monitorbench.runs.verdict_log import VerdictLog, read_verdicts

_log = logging.getLogger(__name__)


def is_done(run: RunDirectory) -> bool:
    """Whether an evaluation finished and its log has as many lines as it had then.

    A person may have removed one that could not be read, as the log's own message advises.
    """
    if not run.done:
        return False
    results = read_manifest(run.path)["results"]
    log = run.path / "verdicts.jsonl"
    lines = log.read_bytes().count(b"\n") if log.is_file() else 0
    return lines >= int(results["n_logged"])


def take_known_verdicts(run: RunDirectory, questions: Sequence[Question], log: VerdictLog) -> list[Question]:
    """Copy the verdicts that other runs have of these questions into `log`; returns the questions left."""
    left = {question.key: question for question in questions}
    for other in _runs_of_the_same_judge(run):
        if not left:
            break
        try:
            verdicts = read_verdicts(other / "verdicts.jsonl")
        except UserError as error:  # the stage that needs that run reports it
            _log.warning("evaluate: nothing is reused from a run that can't be read: %s", error)
            continue
        answered = [verdict for verdict in verdicts if verdict.unscored not in TRANSPORT_FAILURES]
        taken = [verdict for verdict in answered if left.pop(verdict.key, None) is not None]
        for verdict in taken:
            log.append(verdict)
        if taken:
            _log.info("evaluate: %d of %d verdicts reused from %s", len(taken), len(questions), other)
    return list(left.values())


def _runs_of_the_same_judge(run: RunDirectory) -> Iterator[Path]:
    """Folders beside the run whose manifest names the same judge and the same data."""
    for manifest in sorted(run.path.parent.glob("*/manifest.json")):
        folder = manifest.parent
        if folder == run.path or not (folder / "verdicts.jsonl").is_file():
            continue
        identity = read_manifest(folder).get("identity", {})
        if all(identity.get(name) == run.identity[name] for name in ("schema_version", "data", "judge")):
            yield folder
