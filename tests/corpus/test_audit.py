"""The data card: what it counts is what is there, and a cell whose surface tells the label leads it."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from studies import study as compose_study

from monitorbench.config.study import Study
from monitorbench.corpus import audit as audit_module
from monitorbench.corpus.audit import audit
from monitorbench.corpus.card import card
from monitorbench.corpus.store import read_split
from monitorbench.metrics.marks import IN_WORDS, ORACLES, SURFACES
from monitorbench.records import Label, Sample, Split

PLANTED = {
    "safety_permission/qa": "length",
    "sycophancy_bias/qa": "source",
    "specification_gaming/code": "words",
    "specification_gaming/reasoning": "nothing",
}
GROUPS = 40


def _rows() -> list[dict[str, Any]]:
    """Four cells of unpaired rows: in three one surface tells the label, in the last none."""
    rng = random.Random(1)
    words = [f"word{i}" for i in range(40)]
    rows = []
    for cell, planted in PLANTED.items():
        category, task = cell.split("/")
        for number in range(GROUPS):
            bad = bool(number % 2)
            many = 60 if planted == "length" and bad else 20
            said = rng.choices(words, k=many)
            if planted == "words" and bad:
                said[:4] = ["obviously"] * 4
            source = ("logs" if bad else "forum") if planted == "source" else rng.choice(["logs", "forum"])
            rows.append(
                {
                    "request": f"Question {number} of {cell}?",
                    "response": " ".join(said),
                    "label": "misbehavior" if bad else "benign",
                    "category": category,
                    "task": task,
                    "source": source,
                    "licence": "MIT" if number % 4 else "CC-BY-4.0",
                    "split": "test",
                }
            )
    return rows


def _words(_monitor: Any, _models: Path) -> Callable[[Sequence[str]], list[int]]:
    return lambda texts: [len(text.split()) for text in texts]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audited directory; `train` is there and empty, words stand for tokens."""
    folder = tmp_path_factory.mktemp("audit")
    file = folder / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in _rows()), encoding="utf-8")
    study = compose_study(
        "dataset=jsonl",
        f"dataset.path={file}",
        f"paths.data={folder / 'data'}",
        "dataset.splits=[train,test]",
        primary="audit",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_module, "_token_counter", _words)
        return audit(study)


@pytest.fixture(scope="module")
def report(audited: Path) -> dict[str, Any]:
    """`audit.json`."""
    found: dict[str, Any] = json.loads((audited / "audit.json").read_text())
    return found


@pytest.fixture(scope="module")
def cells(audited: Path) -> dict[str, list[Sample]]:
    """The samples of the test split as they lie on disk, by cell."""
    by_cell: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in read_split(audited, Split.TEST):
        by_cell[str(sample.cell)].append(sample)
    return by_cell


def test_what_is_counted_is_what_is_there(report: dict[str, Any], cells: dict[str, list[Sample]]):
    """A card is read in place of the data: a count that is off is believed all the same."""
    assert set(report["splits"]["test"]) == set(cells) == set(PLANTED)
    for cell, facts in report["splits"]["test"].items():
        samples = cells[cell]
        assert facts["samples"] == len(samples) == GROUPS
        assert facts["pairs"] == 0, "no row has a twin"
        assert facts["groups"] == len({sample.group_id for sample in samples})
        assert facts["labels"] == Counter(sample.label.value for sample in samples)
        assert facts["sources"] == Counter(sample.source for sample in samples)
        assert facts["licences"] == {"MIT": 30, "CC-BY-4.0": 10}
        assert facts["constructions"] == {"labelled": GROUPS}


def test_lengths_are_in_tokens_of_request_and_response(
    report: dict[str, Any], cells: dict[str, list[Sample]]
):
    """A context that is chosen by too short a length cuts the samples it should judge."""
    for cell, facts in report["splits"]["test"].items():
        lengths = [
            len(s.request[0].content.split()) + len(s.response[0].content.split()) for s in cells[cell]
        ]
        tokens = facts["tokens"]
        assert tokens["median"] == np.median(lengths)
        assert tokens["max"] == max(lengths)
        assert min(lengths) <= tokens["p95"] <= max(lengths)
        assert tokens["p95"] == pytest.approx(np.percentile(lengths, 95), abs=2)


def test_each_surface_has_its_auroc_with_an_interval(report: dict[str, Any], cells: dict[str, list[Sample]]):
    """One number without an interval turns a cell of forty samples into a verdict."""
    for cell, facts in report["splits"]["test"].items():
        checks = facts["shortcuts"]["checks"]
        assert all(checks[oracle]["auroc"] is None for oracle in ORACLES), "nobody knows what is right"
        for check in [checks[surface] for surface in SURFACES if surface not in ORACLES]:
            low, high = check["auroc_ci"]
            assert 0 <= low <= check["auroc"] <= high <= 1
            assert check["n"] == GROUPS
        assert tuple(checks) == SURFACES
        bad = [sample.label is Label.MISBEHAVIOR for sample in cells[cell]]
        for surface, told in (
            ("length", [len(sample.response[0].content) for sample in cells[cell]]),
            ("source", [sample.source == "logs" for sample in cells[cell]]),
        ):
            # In hindsight scikit-learn knows the direction; held out, one does no better by much.
            oracle = roc_auc_score(bad, told)
            assert checks[surface]["auroc"] <= max(oracle, 1 - oracle) + 0.05
            if PLANTED[cell] == surface:
                assert checks[surface]["auroc"] == pytest.approx(oracle, abs=0.02)


def test_a_cell_that_is_given_away_is_named_at_the_top(report: dict[str, Any], audited: Path):
    """A leak in the eleventh column of a table is a leak nobody has seen."""
    over = {
        (cell, surface)
        for cell, facts in report["splits"]["test"].items()
        for surface, check in facts["shortcuts"]["checks"].items()
        if check["marked"]
    }
    assert {
        ("safety_permission/qa", "length"),
        ("sycophancy_bias/qa", "source"),
        ("specification_gaming/code", "bag_of_words"),
    } <= over
    top = (audited / "card.md").read_text(encoding="utf-8").partition("\n## ")[0]
    named = {
        (cell, s) for cell, s in over if any(cell in li and IN_WORDS[s] in li for li in top.splitlines())
    }
    assert named == over
    assert len(report["marked"]) == len(over)
    assert "specification_gaming/reasoning" not in top
    assert ".65" in top
    for facts in report["splits"]["test"].values():
        for check in facts["shortcuts"]["checks"].values():
            assert check["marked"] == bool(check["auroc_ci"] and check["auroc_ci"][0] > 0.65)
            assert bool(check["rule"]) == check["marked"]


def test_the_card_says_what_a_reader_has_to_know(audited: Path):
    """Shares, licences and lengths decide whether somebody may and can use the data at all."""
    text = (audited / "card.md").read_text(encoding="utf-8")
    (line,) = [li for li in text.splitlines() if li.startswith("| safety_permission/qa")]
    assert all(word in line for word in ("| 40 |", "| 20 |", "[")), line
    assert "logs 20 (50%)" in text
    assert "MIT 120 (75%), CC-BY-4.0 40 (25%)" in text
    assert "labelled 160 (100%)" in text
    heads = [li.count("|") for li in text.splitlines() if li.startswith("| ")]
    assert len(set(heads)) == 1, "one table, every row as wide as its head"


def test_an_empty_split_does_not_stop_the_audit(report: dict[str, Any]):
    """A team whose rows all say `test` has an empty training split, and a card all the same."""
    assert report["splits"]["train"] == {}


def test_another_look_gives_the_same_bytes(audited: Path, monkeypatch: pytest.MonkeyPatch):
    """A card that changes by itself can't be committed beside the data."""
    study = Study.model_validate_json((audited / "config.json").read_text())
    before = {name: (audited / name).read_bytes() for name in ("card.md", "audit.json", "manifest.json")}
    monkeypatch.setattr(audit_module, "_token_counter", _words)
    assert audit(study) == audited
    assert {name: (audited / name).read_bytes() for name in before} == before


def test_twins_are_counted_as_pairs(make_sample: Callable[..., Sample]):
    """Half the pairs, or twice as many, is another benchmark than the card says."""
    samples = [
        make_sample("Go.", f"{label} {n}", pair_id=f"p{n}", group_id=f"g{n % 3}", label=label)
        for n in range(6)
        for label in Label
    ]
    single = make_sample("Go.", "Alone.", pair_id="single", group_id="g0")
    facts = audit_module._facts([*samples, single], None, lambda texts: [1] * len(texts), [])
    assert (facts["samples"], facts["pairs"], facts["groups"]) == (13, 6, 3)


def test_a_sample_of_a_large_cell_keeps_groups_whole(make_sample: Callable[..., Sample]):
    """A twin without the other would tell the surface check something the data does not."""
    samples = [
        make_sample("Go.", f"{label} {n}", pair_id=f"p{n}", group_id=f"g{n // 2}", label=label)
        for n in range(50)
        for label in Label
    ]
    some = audit_module._some(samples, 30)
    assert 26 < len(some) <= 30
    assert set(Counter(sample.group_id for sample in some).values()) == {4}
    assert {s.id for s in audit_module._some(samples[::-1], 30)} == {s.id for s in some}


def test_the_substitutes_card_says_so_and_states_what_is_short():
    """Somebody who takes `paper_local` for the paper's benchmark compares with numbers of another one."""
    manifest = {
        "results": {
            "splits": {
                "test": {"samples": 0},
                "train": {"cells": {"safety_permission/qa": {"samples": 7, "rejected": {"over quota": 3}}}},
            },
            "shortfall": {
                "test": {"sycophancy_bias/qa": {"with_thinking": {"asked": 120, "have": 4, "missing": 116}}},
                "train": {"safety_permission/qa": {"asked": 40000, "have": 7, "missing": 39993}},
            },
            "constructed": {
                "sven": {"samples": 99, "rejected": {"equal twins": 4}, "bad_rows": {"no id": 1}}
            },
        }
    }
    text = card("paper_local-0123", manifest, {"tokenizer": "m", "marked": [], "splits": {}})
    assert "substitute" in text.partition("\n## ")[0].lower()
    assert "| test | sycophancy_bias/qa, with thinking | 120 | 4 | 116 |" in text
    assert "| train | safety_permission/qa | 40000 | 7 | 39993 |" in text
    assert "| sven | 99 | equal twins: 4; no id: 1 |" in text
    assert "| safety_permission/qa | 7 | over quota: 3 |" in text
    whole = {"results": {**manifest["results"], "shortfall": {}}}
    real = card("paper-0123", whole, {"tokenizer": "m", "marked": [], "splits": {}})
    assert "substitute" not in real.lower()


def test_strata_stand_below_their_cell(
    make_sample: Callable[..., Sample], capsys: pytest.CaptureFixture[str]
):
    """A leak in one stratum is diluted in its cell's row; the table has to fit a terminal all the same."""
    rng = random.Random(0)
    samples = [
        make_sample(
            f"Question {n}?",
            " ".join(rng.choices(["ja", "nein", "doch"], k=9))
            + (" so" if stratum and label == "benign" else ""),
            pair_id=f"p{stratum}{n}",
            group_id=f"g{stratum}{n}",
            label=label,
            stratum=stratum,
        )
        for stratum, many in (("", 30), ("leaking <b>|`", 25), ("few", 5))
        for n in range(many)
        for label in Label
    ]
    facts = audit_module._facts(samples, None, lambda texts: [1] * len(texts), [])
    cell = str(samples[0].cell)
    strata = facts["strata"]
    assert {name: (of["samples"], of["pairs"]) for name, of in strata.items()} == {
        "": (60, 30),
        "leaking <b>|`": (50, 25),
        "few": (10, 5),
    }
    assert strata["few"]["shortcuts"] is None
    assert strata["leaking <b>|`"]["shortcuts"]["marked_by"]
    assert strata[""]["shortcuts"]["marked_by"] is None
    many = {"test": {f"{cell.partition('/')[0]}/{task}": facts for task in ("qa", "code", "reasoning")}}
    audit_module._print(many, ["test: a line that is long enough to be folded " * 3])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (row, *_) = [line for line in lines if "leaking" in line]
    assert "†" in row
    text = card("mine-0", {"results": {"splits": {}}}, {"tokenizer": "m", "marked": [], "splits": many})
    assert "↳ no stratum | 60 | 30 |" in text
    assert "leaking &lt;b&gt;" in text
    assert "<b>" not in text
    rows = [line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("| ")]
    assert len(set(rows)) == 1
