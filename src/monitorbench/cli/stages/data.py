"""Stages that build a dataset from sources, label it, and export it."""

from pathlib import Path

from monitorbench.cli.script import stage
from monitorbench.cli.stage import Compose
from monitorbench.config.study import Study


def _annotate(study: Study, _: Compose) -> Path:
    from monitorbench.annotation.stage import annotate

    return annotate(study, study.annotation)


BUILD = stage(
    "build",
    "monitorbench.corpus.build:build",
    """Build a dataset's splits, with its manifest.

    monitorbench build dataset=starter
    monitorbench build dataset=paper plan=true    # what could be had, by cell; builds nothing

Prints the dataset's directory as its last line.
""",
    reads="dataset source cue paths",
    plan="monitorbench.corpus.build:print_plan",
)

ELICIT = stage(
    "elicit",
    "monitorbench.corpus.elicit:elicit",
    """Ask a subject model (`monitor=`) real questions, without and with a misleading cue; keep its answers.

    monitorbench elicit monitor=smollm2_135m 'elicit.sources=[bbq]'

Interrupted, it resumes with the questions that have no answer yet.
Prints the answers' directory, for `dataset.elicited=DIR`.
""",
    reads="elicit monitor engine source cue paths",
    is_live=True,
    no_plan="its questions are known once the sources are read; expected a small elicit.max_questions",
)

ANNOTATE = stage(
    "annotate",
    _annotate,
    """Have samples labelled by annotators: export blind batches, import what they return.

    monitorbench annotate dataset=starter annotation.samples_per_cell=20

Prints the batch's directory; with `annotation.action=import run=BATCH annotation.returned=[FILE,FILE]`
the directory of the kept samples.
""",
    reads="annotation dataset run paths",
    no_plan="it writes batches for people, and runs no model",
)

MIRROR = stage(
    "mirror",
    "monitorbench.sources.mirror:mirror",
    """Fill a local mirror with the raw files of a dataset, on a machine with a network; resumes, verifies.

    monitorbench mirror dataset=paper paths.sources=DIR

Prints a line a source, what could not be had and why, and the mirror's folder as its last line.
""",
    reads="dataset source paths",
    no_plan="it fetches what `build dataset=paper plan=true` names as missing, and nothing twice",
)

AUDIT = stage(
    "audit",
    "monitorbench.corpus.audit:audit",
    """Write a dataset's card: counts, lengths, sources, licences, and what gives labels away without reading.

    monitorbench audit dataset=starter

Builds the dataset where it is not there. Prints its directory as its last line.
""",
    reads="dataset source cue paths",
    no_plan="it builds the dataset and reads it; expected `build … plan=true`",
)

EXPORT = stage(
    "export",
    "monitorbench.interop.export:export",
    """Export a dataset (chats for TRL, a hub repository with its card), or a run's scores as an Inspect log.

    monitorbench export dataset=starter export.format=chat
    monitorbench export dataset=starter export.format=hub export.repo=OWNER/NAME  # a dry run
    monitorbench export export.format=inspect run=runs/evaluate/NAME-HASH

Prints the directory with what was written as its last line.
""",
    reads="export dataset run operating_point paths",
)
