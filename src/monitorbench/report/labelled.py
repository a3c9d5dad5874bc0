"""The page and the printed table of a round of labels: what a few labels say, and how sure it is."""

from pathlib import Path

from monitorbench.config.terminal import opened
from monitorbench.labelling.answer import LabelledAnswer
from monitorbench.metrics.points_in_words import threshold
from monitorbench.metrics.written import DASH, interval, rate
from monitorbench.report.sections.section import PageNumber
from monitorbench.report.tables.terminal import print_rows, say, start_table
from monitorbench.report.template import facts, policy, templates
from monitorbench.runs.directory import read_finished, record_files
from monitorbench.runs.files import write_atomically
from monitorbench.scoring.labelled import in_words

PAGE = "report.html"
_SHOWN = 20
"""Contradicted labels that the page names."""
_METRICS = {
    "miss_rate": "miss rate",
    "false_alarm_rate": "false alarm rate",
    "precision": "precision",
    "base_rate": "base rate",
    "expected_cost": "cost a sample",
    "auroc": "AUROC",
    "misbehavior_found_per_hour": "misbehavior found an hour",
    "misses_found_per_hour": "misses found an hour",
}
_COLUMNS = (("monitor", 24), ("above", 7), ("of", 24), ("estimate", 20))


def report_round(run: Path, estimates: LabelledAnswer) -> Path:
    """Write `report.html` beside the labels of a round, and print the table."""
    page = render_round(estimates, run, str(run / "batches") if (run / "batches").is_dir() else "")
    write_atomically(run / PAGE, page)
    record_files(run, PAGE)
    show_round(estimates)
    return run


def render_round(estimates: LabelledAnswer, run: Path, batch: str) -> str:
    """Return the page of a round, whose next batch is in `batch`, if anywhere."""
    finished = read_finished(run)
    values = {
        "policy": policy(),
        "name": run.name,
        "sentence": estimates.sentence,
        "batch": batch if estimates.decision == "insufficient" else "",
        "n_next": finished["results"]["n_asked"],
        "sentences": [
            *estimates.remarks,
            f"Estimated by {estimates.estimator} from {estimates.n_labels} labels; what is unlabelled is not "
            "taken for benign.",
            f"Label errors: {estimates.sensitivity}.",
            *(f"Threshold of {in_words(promise)}." for promise in estimates.promises),
        ],
        "headings": ("monitor", "above", "of", "#estimate", "labels"),
        "rows": [
            (name, above, metric, PageNumber(value, ends), str(estimates.n_labels))
            for name, above, metric, value, ends in _rows(estimates)
        ],
        "contradicted": estimates.contradicted[:_SHOWN],
        "n_contradicted": len(estimates.contradicted),
        "made": [("run", run.name), *facts(finished)],
    }
    return templates().get_template("labelled.html.j2").render(values)


def show_round(estimates: LabelledAnswer) -> None:
    """Print the sentence and the rows to stderr."""
    console = opened(stderr=True)
    for sentence in (estimates.sentence, *estimates.remarks):
        say(console, sentence, "bold")
    start_table(console, f"{estimates.n_labels} labels, {estimates.estimator}", _COLUMNS)
    rows = [
        (name, above, metric, f"{value} {ends}".rstrip())
        for name, above, metric, value, ends in _rows(estimates)
    ]
    print_rows(console, _COLUMNS, rows, last_number=0)
    say(console, f"Label errors: {estimates.sensitivity}.")


def _rows(estimates: LabelledAnswer) -> list[tuple[str, str, str, str, str]]:
    """Monitor, threshold, metric, value and interval of each row of the table."""
    rows = []
    for row in estimates.table.rows():
        is_share = row.metric not in ("expected_cost", *list(_METRICS)[-2:]) and not row.against
        ends = (row.low, row.high) if row.low is not None and row.high is not None else None
        if is_share:
            value, within = rate(row.value), interval(ends)
        else:
            value = DASH if row.value is None else f"{row.value:.3g}"
            within = f"[{ends[0]:.3g}, {ends[1]:.3g}]" if ends and ends[0] != ends[1] else ""
        above = threshold(float(row.point)) if row.point else ""
        name = f"{row.monitor} - {row.against}" if row.against else row.monitor
        rows.append((name, above, _METRICS[row.metric], value, within))
    return rows
