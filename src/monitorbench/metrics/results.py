"""The shape of `metrics.json`: what scoring writes and the report reads."""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, cast

from monitorbench.metrics.choice.facts import DecisionFacts
from monitorbench.metrics.columns import OVERALL
from monitorbench.metrics.cost_fronts import CostFronts, UsageFacts
from monitorbench.metrics.drift import Drift
from monitorbench.metrics.marks import ShortcutMarks
from monitorbench.metrics.prompts import PromptsFacts, WordingChoice
from monitorbench.metrics.registry import as_json, from_json
from monitorbench.metrics.score_facts import ScoreFacts, in_words
from monitorbench.metrics.significance import RateTest
from monitorbench.metrics.summary import Curves
from monitorbench.metrics.table import MACRO, SHARED, Numbers, Place, Table, base_of, is_cell, is_slice
from monitorbench.metrics.trainings import DirectionsFacts, ObjectiveTest, Seeds
from monitorbench.metrics.transfer import TransferDifference
from monitorbench.metrics.words import CellVerdict, Chance, Matrix
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


class CorrelationFacts(TypedDict):
    """Pearson's r over `n` monitors; None where it is undefined."""

    r: float | None
    r_ci: list[float] | None
    """Fisher's interval, 95 %; None for fewer than four monitors."""
    n: int


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
    """All that is known of some runs: the table of numbers, and what is no number. See `nested` for the file.

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
    tests: list[RateTest]
    """Each adapter against its base; Holm's correction is over the whole list."""
    correlation: dict[str, CorrelationFacts]
    """Prompt: MR against FAR over the bases; adapters and baselines are left out."""
    transfer: dict[str, dict[str, dict[str, TransferDifference]]]
    """Adapter, prompt, cell; the cells of `monitors`, and `trained` and `held_out`: all test cells it
    was trained on, and all others."""
    effects: dict[str, dict[str, dict[str, TransferDifference]]]
    """Training, prompt, cell, as `transfer`: of several seeds their mean under the name without the seed, of
    one seed the adapter."""
    adapters: dict[str, list[str]]
    """Training: its adapters, in the order of their seeds."""
    matrix: Matrix
    """`effects` in words."""
    chance: Chance
    """Training, prompt, cell: AUROC against .5."""
    directions: NotRequired[DirectionsFacts]
    """Cosines of linear heads; absent where fewer than two trainings have some."""
    seeds: dict[str, Seeds]
    """Adapter without its seed: the spread over several seeds of one training."""
    objectives: list[ObjectiveTest]
    """Other objectives against `sft` on held-out cells."""
    exposures: dict[str, float]
    """Adapter: how often its training showed each sample on average; absent where not known."""
    trained_on: dict[str, list[str]]
    """Adapter: the `category/task` cells it was trained on."""
    pareto: dict[str, list[str]]
    """Prompt: the monitors on the front of overall (MR, FAR)."""
    shortcuts: dict[str, ShortcutMarks]
    """Checks that tell the labels apart without reading, by `category/task` cell and by stratum named as in
    `slices`; of the test split, or of all splits where they are shares of one pool."""
    operating_point: NotRequired[dict[str, Any]]
    """The calibrated threshold that answers were read at; absent: each judge's own answers."""
    operating_points: NotRequired[dict[str, dict[str, OperatingPointFacts]]]
    """Monitor, prompt; absent where no calibration was given."""
    usage: dict[str, dict[str, UsageFacts]]
    """Monitor, prompt: seconds, tokens and money an answer."""
    cost_fronts: CostFronts
    """Cost, quality: who is on the front of both."""
    scores: dict[str, dict[str, ScoreFacts]]
    """Monitor, prompt: scores that are bounds, and those that contradict their label."""
    prompts: dict[str, PromptsFacts]
    """Monitors that were judged under several prompts."""
    wordings: NotRequired[dict[str, WordingChoice]]
    """Monitors whose prompt was chosen on the validation split; absent without a choice."""
    decision: DecisionFacts
    """Which monitor to deploy."""
    learning_curves: dict[str, list[CurvePoint]]
    """Points of the learning curve, by adapter."""


def nested(results: Results) -> dict[str, Any]:
    """Return `metrics.json`: what is no number as it is, and the numbers as trees by monitor and prompt.

    `monitors` has the cells; `slices` `task:<task>`, `with_thinking`, `without_thinking`, `source:<source>`
    and the strata `<category>/<task>:<stratum>`; `macro` the means over the `category/task` cells; `overall`
    the curves and the expected cost; `prompts` the numbers of several prompts over the same samples.
    """
    tree: dict[str, Any] = {k: of for k, of in results.items() if k not in ("table", "curves")}
    tree |= number_trees(results["table"], results["curves"])
    for monitor, by_prompt in results.get("operating_points", {}).items():
        of_monitor = tree["operating_points"] = {**tree["operating_points"], monitor: {}}
        for prompt, point in by_prompt.items():
            test, calibration = (numbers_at(results, monitor, prompt, split) for split in _OF_POINTS)
            numbers = {"rates": as_json(test), "calibration": as_json(calibration) or None}
            of_monitor[monitor][prompt] = {**point, **numbers}
    for monitor, facts in results["prompts"].items():
        of = {prompt: as_json(numbers) for prompt, numbers in shared_numbers(results, monitor).items()}
        tree["prompts"] = {**tree["prompts"], monitor: {**facts, "by_prompt": of}}
    return tree


_OF_POINTS = {Split.TEST: "rates", Split.CALIBRATION: "calibration"}


def numbers_at(results: Results, monitor: str, prompt: str, split: Split = Split.TEST) -> Numbers:
    """Return what a monitor's operating point comes to on a split; empty where that is not known."""
    point = results["operating_points"][monitor][prompt]
    return results["table"].numbers(Place(monitor, prompt, OVERALL, point["name"], split.value)) or {}


def number_trees(table: Table, curves: Mapping[str, Mapping[str, Curves]]) -> dict[str, Any]:
    """Return the numbers of all monitors' own answers as `nested` has them."""
    trees: dict[str, Any] = {"monitors": {}, "slices": {}, "macro": {}, "overall": {}}
    for monitor, prompt in table.judged():
        parts = {name: as_json(numbers) for name, numbers in table.parts(monitor, prompt).items()}
        cost = {key: parts[OVERALL].pop(key) for key in _COST if key in parts[OVERALL]}
        of_prompt = {
            "monitors": {name: of for name, of in parts.items() if is_cell(name)},
            "slices": {name: of for name, of in parts.items() if is_slice(name)},
            "macro": parts.get(MACRO, {}),
            "overall": {**curves[monitor][prompt], **cost},
        }
        for key, tree in of_prompt.items():
            trees[key].setdefault(monitor, {})[prompt] = tree
    return trees


def read_trees(trees: Mapping[str, Any]) -> tuple[Table, dict[str, dict[str, Curves]]]:
    """Read what `number_trees` wrote."""
    table, curves = Table(), dict[str, dict[str, Curves]]()
    for monitor, by_prompt in trees["monitors"].items():
        for prompt, cells in by_prompt.items():
            macro, overall = (trees[key].get(monitor, {}).get(prompt, {}) for key in ("macro", "overall"))
            slices = trees["slices"].get(monitor, {}).get(prompt, {})
            for name, numbers in (cells | slices | ({MACRO: macro} if macro else {})).items():
                table.add(Place(monitor, prompt, name), from_json(numbers))
            table.add(Place(monitor, prompt), from_json(overall))
            prompt_curves = Curves(roc=overall.get("roc", []), reliability=overall.get("reliability", []))
            curves.setdefault(monitor, {})[prompt] = prompt_curves
    return table, curves


_COST = ("expected_cost", "expected_cost_ci")


def shared_numbers(results: Results, monitor: str) -> dict[str, Numbers]:
    """Return a monitor's numbers by prompt over the samples that it judged under each, the base first."""
    table, base = results["table"], results["prompts"][monitor]["base"]
    prompts = sorted(
        (prompt for name, prompt in table.judged() if name == monitor), key=lambda key: key != base
    )
    by_prompt = {prompt: table.parts(monitor, prompt).get(SHARED) for prompt in prompts}
    return {prompt: numbers for prompt, numbers in by_prompt.items() if numbers}


def as_results(data: Mapping[str, Any]) -> Results:
    """Read a parsed `metrics.json`; raises ValueError where it is of another schema version."""
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema_version: got {version!r}, expected {SCHEMA_VERSION}; score the run again")
    table, curves = read_trees(data)
    tree = {
        key: value for key, value in data.items() if key not in ("monitors", "slices", "macro", "overall")
    }
    if points := data.get("operating_points"):
        tree["operating_points"] = {name: dict(by_prompt) for name, by_prompt in points.items()}
        for monitor, by_prompt in tree["operating_points"].items():
            for prompt, point in by_prompt.items():
                by_prompt[prompt] = {k: of for k, of in point.items() if k not in ("rates", "calibration")}
                for split, key in _OF_POINTS.items():
                    if numbers := point.get(key):
                        place = Place(monitor, prompt, OVERALL, point["name"], split.value)
                        table.add(place, from_json(numbers))
    for monitor, facts in data["prompts"].items():
        for prompt, numbers in facts["by_prompt"].items():
            table.add(Place(monitor, prompt, SHARED), from_json(numbers))
    return cast(Results, {**tree, "table": table, "curves": curves})


def short_names(results: Results) -> dict[str, str]:
    """Return the names of monitors and trainings as people read them.

    They are `+all` for `smollm2_135m+all`, where only one base is there to be meant, and `judge (missing left
    out)` for `judge_missing_left_out`.
    """
    names = list(dict.fromkeys([*results["table"].monitors(), *results["effects"]]))
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


def cell_verdict(results: Results, training: str, prompt: str, cell: str) -> CellVerdict | None:
    """The word of a training's cell, where the matrix has one."""
    return results["matrix"]["words"].get(training, {}).get(prompt, {}).get(cell)


def n_seeds(results: Results, training: str) -> int:
    """How many adapters a statement about a training rests on."""
    return len(results["adapters"].get(training, [training]))


def training_of(results: Results, adapter: str) -> str:
    """The training of an adapter; the adapter itself where its training has one seed."""
    return next((name for name, adapters in results["adapters"].items() if adapter in adapters), adapter)
