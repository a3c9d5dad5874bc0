"""Which runs each setting of each stage can name."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from monitorbench.runs.directory import KINDS
from monitorbench.runs.run_folders import Run


@dataclass(frozen=True)
class Wanted:
    """The runs that a setting can name."""

    kinds: tuple[str, ...]
    words: str
    """The words of an error for what was expected."""
    split: str = ""
    """The split that an evaluation must have judged; "" for any."""
    is_done: bool = True
    """Whether only a finished run will do."""
    fits: Callable[[Run], bool] = lambda _: True
    """A further test of the runs that `latest` and `@` mean; who types a name means that run."""

    def takes(self, run: Run) -> bool:
        """Whether a run is of the kind, the split and the state."""
        return (
            run.kind in self.kinds
            and (not self.split or run.split in ("", self.split))
            and (not self.is_done or run.state == "done")
        )


ANY_RUN = Wanted(tuple(KINDS), "a run", is_done=False)
COMPARED = replace(
    ANY_RUN,
    words="a finished evaluation run",
    fits=lambda run: run.kind == "evaluate" and run.state == "done",
)
_JUDGED = Wanted(("evaluate",), "a finished evaluation run")
_TESTED = Wanted(("evaluate",), "a finished evaluation run over the test split", "test")
_CALIBRATED = Wanted(("evaluate",), "a finished evaluation run over the calibration split", "calibration")
_ROUND = Wanted(("label",), "a finished round of labels")
_TRAINED = Wanted(("train",), "a finished training run")
_FITTED = Wanted(("fit",), "a finished fit of a probe")
_THRESHOLD = Wanted(("calibrate",), "a finished calibration")
_CHOSEN_FROM = Wanted(
    ("evaluate",),
    "a finished evaluation run over the calibration or the test split",
    fits=lambda run: run.split != "validation",
)
_PILOTED = Wanted(("pilot",), "a finished pilot")
_WORDED = Wanted(("wording",), "a finished choice of a wording")
_REPORTED = Wanted(
    ("evaluate", "transfer", "pilot"),
    "a scored evaluation run, a transfer run or a pilot",
    fits=lambda run: (
        run.kind == "pilot"
        or (run.kind == "evaluate" and run.split == "test" and "imported" in run.manifest["results"])
        or (run.path / "metrics.json").is_file()
    ),
)


def _or_round(wanted: Wanted) -> Wanted:
    """The runs of a setting, or a round of labels, which has numbers as soon as a label is back."""
    return replace(
        wanted,
        kinds=(*wanted.kinds, "label"),
        words=f"{wanted.words}, or a round of labels",
        fits=lambda run: (
            bool(run.manifest["results"]["n_labels"]) if run.kind == "label" else wanted.fits(run)
        ),
    )


_MONITOR = {"monitor.adapter": _TRAINED, "monitor.head": _FITTED, "monitor.head_beside": _FITTED}
READS: dict[str, dict[str, Wanted]] = {
    "evaluate": {**_MONITOR, "adapters": _TRAINED},
    "elicit": _MONITOR,
    "wording": _MONITOR,
    "label": {"run": _ROUND},
    "queue": {"run": _ROUND},
    "views": _MONITOR,
    "serve": {**_MONITOR, "adapters": _TRAINED, "operating_point": _THRESHOLD},
    "pilot": _MONITOR,
    "score": {"run": _or_round(_TESTED), "operating_point": _THRESHOLD},
    "stress": {"run": _JUDGED, "operating_point": _THRESHOLD},
    "calibrate": {"run": _or_round(_CALIBRATED), "operating_point": _THRESHOLD},
    "combine": {"combine.calibration": _CALIBRATED, "combine.test": _TESTED},
    "control": {"control.calibration": _CALIBRATED, "control.test": _TESTED},
    "gate": {
        "run": replace(_TESTED, words="a finished evaluation run", split=""),
        "operating_point": _THRESHOLD,
        **_MONITOR,
    },
    "transfer": {
        "transfer.runs": _TESTED,
        "transfer.operating_points": _THRESHOLD,
        "transfer.wordings": _WORDED,
    },
    "report": {"run": _or_round(_REPORTED), "operating_point": _THRESHOLD},
    "recommend": {"recommend.runs": _or_round(_CHOSEN_FROM), "recommend.pilot": _PILOTED},
    "export": {"run": _JUDGED, "operating_point": _THRESHOLD},
    "merge": {"run": _TRAINED},
    "push": {"run": _TRAINED},
    "verify": {"run": ANY_RUN},
}
"""The settings of each stage that name runs, and which; in the order they are resolved."""
NEEDS_A_RUN = frozenset(("score", "stress", "calibrate", "report", "merge", "push"))
