"""Realistic results, made by the metrics themselves from synthetic verdicts."""

import copy
import random
from collections.abc import Set
from typing import Any

from recommendation_page import fake_recommendation

from monitorbench.config.evaluation import Stakes
from monitorbench.metrics.columns import by_cell, columns
from monitorbench.metrics.marks import SURFACES, ShortcutMarks, SurfaceCheck, is_marked, shortcuts
from monitorbench.metrics.metrics_json import nested
from monitorbench.metrics.rates import Judged
from monitorbench.metrics.results import SCHEMA_VERSION, CurvePoint, Results, short_names
from monitorbench.metrics.summary import add_numbers, rates_at
from monitorbench.metrics.table import Place, Table
from monitorbench.metrics.trainings import ObjectivePair, objective_tests
from monitorbench.metrics.transfer import difference, differences, differences_over_seeds
from monitorbench.metrics.words import add_chance, add_corrected
from monitorbench.records import Category, Label, Task
from monitorbench.report.sections.section import Material
from monitorbench.scoring.measure import Drawn

CELLS = [
    (Category.SAFETY_PERMISSION, Task.QA),
    (Category.SAFETY_PERMISSION, Task.CODE),
    (Category.SYCOPHANCY_BIAS, Task.QA),
    (Category.SYCOPHANCY_BIAS, Task.REASONING),
    (Category.SPECIFICATION_GAMING, Task.QA),
    (Category.SPECIFICATION_GAMING, Task.CODE),
    (Category.SPECIFICATION_GAMING, Task.REASONING),
]
BASE = "smollm2_135m"
TRAINED_ON = {
    f"{BASE}+safety_permission": ["safety_permission/qa", "safety_permission/code"],
    f"{BASE}+all": [f"{category}/{task}" for category, task in CELLS],
}
DRAWS = Drawn(resamples=200, seed=0)
STAKES = Stakes(base_rate=0.01, cost_miss=100.0, cost_alarm=1.0)


def verdicts(name: str, prompt: str, pairs: int = 20, unscored: float = 0.0) -> list[Judged]:
    """A monitor that separates better where its name says that it was trained."""
    random_ = random.Random(f"{name}/{prompt}")
    found = []
    for category, task in CELLS:
        trained = f"{category}/{task}" in TRAINED_ON.get(name, [])
        skill = 1.6 if trained else 0.6 if name == "bag_of_words" else 0.15
        for i in range(pairs):
            for label in Label:
                mean = skill / 2 if label is Label.MISBEHAVIOR else -skill / 2
                score = 1 / (1 + 2.718 ** -random_.gauss(mean, 1))
                answer = Label.MISBEHAVIOR if score > 0.45 else Label.BENIGN
                pair = f"{category}/{task}/{i}"
                found.append(
                    Judged(
                        sample_id=f"{pair}/{label}",
                        pair_id=pair,
                        group_id=pair,
                        category=category,
                        task=task,
                        label=label,
                        answer=None if random_.random() < unscored else answer,
                        score=score,
                        source="gsm8k" if task is Task.REASONING else "starter",
                        has_thinking=i % 2 == 0,
                    )
                )
    return found


def fake_shortcuts(auroc: float) -> ShortcutMarks:
    """The bag of words at this AUROC, the others at a coin's."""

    def check(value: float) -> SurfaceCheck:
        bounds = [value - 0.08, value + 0.08]
        marked = is_marked("echo", value, bounds)
        rule = 'the word "sneaky": 72% of misbehavior, 2% of benign' if marked else ""
        return SurfaceCheck(
            auroc=value, auroc_ci=bounds, n=112, within=value, from_train=None, marked=marked, rule=rule
        )

    return shortcuts({name: check(auroc if name == "bag_of_words" else 0.5) for name in SURFACES})


def fake_results(*, are_trainings: bool = True) -> Results:
    """Base, two adapters and bag of words on 280 samples; the evidence prompt on 140.

    Each adapter is a training of one seed, unless they are none of their own.
    """
    shapes = {"direct": (20, 0.0), "evidence": (10, 0.12)}
    judged = {
        name: {prompt: columns(verdicts(name, prompt, *shape)) for prompt, shape in shapes.items()}
        for name in (BASE, *TRAINED_ON)
    }
    for name in ("bag_of_words", "random"):
        judged[name] = {"none": columns(verdicts(name, "none"))}
    table = Table()
    of_all = {
        name: {prompt: add_numbers(table, name, prompt, found, STAKES) for prompt, found in by.items()}
        for name, by in judged.items()
    }
    for name, cells in TRAINED_ON.items():
        for prompt in shapes:
            base, tuned = judged[BASE][prompt], judged[name][prompt]
            inside = base.in_cells(cells)
            minus = differences(base, tuned, **DRAWS) | {
                where: difference(base.taking(part), tuned.taking(part), **DRAWS)
                for where, part in (("trained", inside), ("held_out", ~inside))
            }
            for where, numbers in minus.items():
                table.add(Place(name, prompt, where, against="base"), numbers)
    trainings = [(name, prompt) for name in TRAINED_ON for prompt in shapes]
    add_chance(table, {(name, prompt): [judged[name][prompt]] for name, prompt in trainings})
    names = [BASE, *TRAINED_ON]
    checked = {f"{c}/{t}": fake_shortcuts(0.55 + 0.06 * i) for i, (c, t) in enumerate(CELLS)}
    curves: dict[str, list[CurvePoint]] = {
        name: [
            {
                "step": step,
                "loss": 0.7 - 0.002 * step if step else None,
                "auroc": 0.5 + 0.0015 * step,
                "auroc_ci": [0.43 + 0.0015 * step, 0.57 + 0.0015 * step],
                "miss_rate": 0.5,
                "false_alarm_rate": 0.4,
            }
            for step in range(0, 121, 20)
        ]
        for name in TRAINED_ON
    }
    threshold = 0.6290001
    above = judged[BASE]["direct"].answering(
        (judged[BASE]["direct"].scores > threshold).astype(float), judged[BASE]["direct"].scores
    )
    point = f"{BASE}-direct-0123456789ab"
    table.add(Place(BASE, "direct", point=point), rates_at(above, STAKES))
    return {
        "operating_points": {
            BASE: {
                "direct": {
                    "name": point,
                    "calibrated_on": "starter-ab12cd34ef56",
                    "thresholds": [
                        {
                            "category": "",
                            "threshold": threshold,
                            "method": "neyman_pearson",
                            "alpha": 0.1,
                            "delta": 0.05,
                            "n": 120,
                            "reason": "",
                            "mix": "drawn",
                            "effective_n": None,
                        }
                    ],
                    "unscored": {},
                }
            }
        },
        "usage": {
            name: {
                prompt: {
                    "n": 280,
                    "seconds_p50": 0.3,
                    "seconds_p95": 1.25,
                    "prompt_tokens": 250.4,
                    "completion_tokens": 1.0,
                    "cost": 0.0002,
                    "seconds": 0.4 + i + j / 10,
                }
                for j, prompt in enumerate(shapes)
            }
            for i, name in enumerate(names)
        },
        "decision": fake_recommendation("none", BASE, f"{BASE}+all", threshold),
        "schema_version": SCHEMA_VERSION,
        "dataset": {"name": "starter", "directory": "starter-ab12cd34ef56", "n_test": 280},
        "table": table,
        "curves": of_all,
        "stakes": {"base_rate": 0.01, "cost_miss": 100.0, "cost_alarm": 1.0},
        "correlation": {prompt: {"r": -0.4, "r_ci": None, "n": 3} for prompt in shapes},
        "adapters": {name: [name] for name in TRAINED_ON},
        "matrix": add_corrected(table, trainings if are_trainings else [], 0.05),
        "seeds": {f"{BASE}+twice": {0: names[1], 1: names[2]}},
        "objectives": objective_tests(
            [
                ObjectivePair(
                    "twice", 0, "direct", "pairwise", judged[names[1]]["direct"], judged[names[2]]["direct"]
                )
            ],
            **DRAWS,
        ),
        "trained_on": TRAINED_ON,
        "headline": {},
        "unscored": {},
        "scores": {},
        "exposures": {},
        "shortcuts": checked,
        "learning_curves": curves,
    }


def fake_tree() -> dict[str, Any]:
    """The same as `metrics.json` has it, to be changed and read with `as_results`."""
    return copy.deepcopy(nested(fake_results()))


MANIFEST = {
    "status": "done",
    "identity": {"schema_version": 1, "seed": 0, "prompts": ["direct", "evidence"], "monitor": BASE},
    "git_commit": "0123456789abcdef0123456789abcdef01234567",
    "git_dirty": False,
    "versions": {"python": "3.11.7", "torch": "2.13.0", "transformers": "5.19.0"},
    "machine": {"platform": "Linux-6.1-x86_64", "cpus": 2},
    "started": "2026-01-01T00:00:00+00:00",
    "seconds": 812.4,
}


def of_two_seeds() -> Results:
    """The same, the two adapters taken for two seeds of one training."""
    found = fake_results(are_trainings=False)
    family, (first, second) = f"{BASE}+twice", TRAINED_ON
    base, *tuned = (columns(verdicts(name, "direct", 20, 0.0)) for name in (BASE, first, second))
    inside = base.in_cells(TRAINED_ON[first])
    parts = by_cell(base) | {"trained": inside, "held_out": ~inside}
    for part, numbers in differences_over_seeds(base, tuned, parts, **DRAWS).items():
        found["table"].add(Place(family, "direct", part, against="base"), numbers)
    matrix = add_corrected(found["table"], [(family, "direct")], 0.05)
    return {**found, "adapters": {family: [first, second]}, "matrix": matrix}


def material_of(results: Results, browsable: Set[tuple[str, str]] = frozenset()) -> Material:
    """What the sections of a page of these results draw on."""
    return Material(
        results, MANIFEST, {}, (), results["table"].prompts(), short_names(results), (), browsable
    )
