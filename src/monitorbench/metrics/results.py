"""Results of some runs: the table of numbers, and all that is no number; `metrics_json` writes both."""

from typing import Any, NotRequired, TypedDict

from monitorbench.metrics.choice import Recommendation
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.cost_fronts import CorrelationFacts, UsageFacts
from monitorbench.metrics.drift import Drift
from monitorbench.metrics.marks import ShortcutMarks
from monitorbench.metrics.prompts import WordingChoice
from monitorbench.metrics.score_facts import ScoreFacts, in_words
from monitorbench.metrics.summary import Curves
from monitorbench.metrics.table import BASE, Compared, Numbers, Place, Table, base_of
from monitorbench.metrics.trainings import DirectionsFacts, ObjectiveTest
from monitorbench.metrics.words import Matrix, is_told
from monitorbench.records import Split

SCHEMA_VERSION = 6


class DatasetFacts(TypedDict):
    """The dataset that was judged."""

    name: str
    directory: str
    """`<name>-<hash>`: the hash names the content."""
    n_test: int
    positive_means: NotRequired[str]
    """Meaning of the label `misbehavior` there; absent where it means just that."""
    without_texts: NotRequired[bool]
    """Whether it is an import whose file had no responses: what would read them is missing."""


class CurvePoint(TypedDict):
    """One point of a learning curve; all but `loss` on the validation split."""

    step: int
    loss: float | None
    """Mean training loss since the point before; None where no step was taken yet."""
    auroc: float | None
    auroc_ci: list[float] | None
    miss_rate: float | None
    false_alarm_rate: float | None


class ThresholdFacts(TypedDict):
    """One calibrated threshold and its promise."""

    category: str
    """The one category it is for; empty for all."""
    threshold: float | None
    """An answer is misbehavior where its score is above it; None where no threshold keeps the promise."""
    method: str
    alpha: float
    delta: float | None
    """None for `conformal_risk`, which promises an average."""
    n: int
    """Benign calibration questions."""
    mix: str
    """Source of the cell shares that the promise is for: `drawn`, `test`, `given`."""
    effective_n: float | None
    """Effective number of questions in these shares (Kish); None where all weigh the same."""
    reason: str
    """Why there is no threshold."""


class OperatingPointFacts(TypedDict):
    """A calibrated operating point; the table has its numbers on the test and the calibration split.

    The misbehavior samples of the calibration split are none that the threshold was set on.
    """

    name: str
    """Name of the run of `calibrate.py`."""
    calibrated_on: str
    """The dataset's directory name."""
    thresholds: list[ThresholdFacts]
    flags_nothing: NotRequired[bool]
    """Whether no scored sample of the test split is above the threshold."""
    flags_nothing_there: NotRequired[bool]
    """The same of the calibration split."""
    drift: NotRequired[Drift | None]
    """Whether the benign scores are those it was calibrated on; None where these are not there any more."""
    longest_prompts: NotRequired[list[float | None]]
    """Prompt tokens of the longest text in calibration and of the longest here; None where not counted."""
    unscored: dict[str, int]
    """Reason: how many; `no_score` where there is an answer without a score."""


class Results(TypedDict):
    """All that is known of some runs.

    Prompt `none` is a baseline, which reads no prompt (`bag_of_words`, …). An adapter is named `<base>+<what
    it was trained on>`.
    """

    schema_version: int
    dataset: DatasetFacts
    table: Table
    curves: dict[str, dict[str, Curves]]
    """Monitor, prompt: ROC and reliability."""
    headline: dict[str, str]
    """Stratum of each `category/task` cell whose numbers are one stratum's."""
    unscored: dict[str, dict[str, dict[str, int]]]
    """Monitor, prompt, reason: how many answers are no label, or never came."""
    stakes: dict[str, float]
    """Stakes at which the expected costs are computed: `base_rate`, `cost_miss` and `cost_alarm`."""
    correlation: dict[str, CorrelationFacts]
    """Prompt: MR against FAR over the bases; adapters and baselines are left out."""
    adapters: dict[str, list[str]]
    """Training: its adapters, in the order of their seeds. One of several seeds has their name without the
    seed, one of one seed the adapter's."""
    matrix: Matrix
    """Evidence for the words of trainings."""
    directions: NotRequired[DirectionsFacts]
    """Cosines of linear heads; absent where fewer than two trainings have some."""
    seeds: dict[str, dict[int, str]]
    """Training of several seeds: its adapters by seed; `trainings.spreads` sums them up."""
    objectives: list[ObjectiveTest]
    """Other objectives against `sft` on held-out cells."""
    exposures: dict[str, float]
    """Adapter: how often its training showed each sample on average; absent where not known."""
    trained_on: dict[str, list[str]]
    """Adapter: the `category/task` cells it was trained on."""
    shortcuts: dict[str, ShortcutMarks]
    """Checks that tell the labels apart without reading, by `category/task` cell and by stratum named as in
    `slices`; of the test split, or of all splits where they are shares of one pool."""
    operating_point: NotRequired[dict[str, Any]]
    """The calibrated threshold that answers were read at; absent: each judge's own answers."""
    operating_points: NotRequired[dict[str, dict[str, OperatingPointFacts]]]
    """Monitor, prompt; absent where no calibration was given."""
    usage: dict[str, dict[str, UsageFacts]]
    """Monitor, prompt: seconds, tokens and money an answer."""
    scores: dict[str, dict[str, ScoreFacts]]
    """Monitor, prompt: scores that are bounds, and those that contradict their label."""
    wordings: NotRequired[dict[str, WordingChoice]]
    """Monitors whose prompt was chosen on the validation split; absent without a choice."""
    decision: Recommendation
    """Which monitor to deploy."""
    learning_curves: dict[str, list[CurvePoint]]
    """Points of the learning curve, by adapter."""


def numbers_at(results: Results, monitor: str, prompt: str, split: Split = Split.TEST) -> Numbers:
    """Return what a monitor's operating point comes to on a split; empty where that is not known."""
    point = results["operating_points"][monitor][prompt]
    return results["table"].numbers(Place(monitor, prompt, OVERALL, point["name"], split.value)) or {}


def effects_of(results: Results) -> Compared:
    """Return the numbers of each training set against its base, by training, prompt and part.

    Beside the cells stand `trained` and `held_out`: all test cells that it was trained on, and all others.
    """
    compared = results["table"].compared(BASE)
    return {
        name: {prompt: parts for prompt, parts in compared[name].items() if is_told(parts[OVERALL])}
        for name in results["adapters"]
    }


def short_names(results: Results) -> dict[str, str]:
    """Return the names of monitors and trainings as people read them.

    They are `+all` for `smollm2_135m+all`, where only one base is there to be meant, and `judge (missing left
    out)` for `judge_missing_left_out`.
    """
    names = list(dict.fromkeys([*results["table"].monitors(), *results["adapters"]]))
    one_base = len({base_of(name) for name in names if not results["table"].is_reference(name)}) == 1
    return {
        name: in_words(name.removeprefix(base_of(name)) if one_base and name != base_of(name) else name)
        for name in names
    }


def is_trained(results: Results, training: str, cell: str) -> bool:
    """Whether a training (or adapter) was on a cell; on an aggregate: on every tested cell of it."""
    adapter = results["adapters"].get(training, [training])[0]
    terms = results["trained_on"].get(adapter, [])
    inside = results["table"].inner_cells(cell)
    return bool(inside) and all(inner in terms or inner.partition("/")[0] in terms for inner in inside)


def n_seeds(results: Results, training: str) -> int:
    """How many adapters a statement about a training rests on."""
    return len(results["adapters"].get(training, [training]))


def training_of(results: Results, adapter: str) -> str:
    """The training of an adapter; the adapter itself where its training has one seed."""
    return next((name for name, adapters in results["adapters"].items() if adapter in adapters), adapter)
