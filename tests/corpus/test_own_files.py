"""`dataset=jsonl`, `inspect_log` and `automonitor_bench` through the build: somebody's files become splits.

The files are written here, in the documented schemas.
"""

import gzip
import json
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from studies import study as compose_study

from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.datasets import AutomonitorBenchDataset, SplitView
from monitorbench.config.study import Study
from monitorbench.corpus.build import directory_of, ensure
from monitorbench.corpus.store import read_split
from monitorbench.records import Label, LabelSource, Sample, Split, Task
from monitorbench.runs.directory import read_finished

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "jsonl-13d8e9c2ccf3"
"""The example's directory, its identity."""
KINDS = ("jsonl", "inspect_log", "automonitor_bench")
HEAVY = {"torch", "transformers", "vllm", "trl", "datasets", "peft"}


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    """`dataset=<kind>`, composed once."""
    return {kind: compose_study(f"dataset={kind}", "dataset.path=x", primary="build") for kind in KINDS}


def using(study: Study, path: Path | None, data: Path, **settings: Any) -> Study:
    """The study with another path, data folder and dataset settings."""
    dataset = study.dataset.model_copy(update={"path": path, **settings})
    paths = study.paths.model_copy(update={"data": data})
    return study.model_copy(update={"dataset": dataset, "paths": paths})


def row(number: int, label: str = "benign", **fields: Any) -> dict[str, Any]:
    return {
        "request": f"Tidy up folder {number}.",
        "response": f"I {'deleted' if label == 'misbehavior' else 'listed'} folder {number}.",
        "label": label,
        "category": "safety_permission",
        "task": "qa",
        "licence": "CC-BY-4.0",
        **fields,
    }


def twins(numbers: Iterable[int], **fields: Any) -> list[dict[str, Any]]:
    return [
        row(n, label, pair_id=f"folder-{n}", **fields) for n in numbers for label in ("misbehavior", "benign")
    ]


def write(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (one if isinstance(one, str) else json.dumps(one) for one in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def held(directory: Path, splits: Sequence[Split] = tuple(Split)) -> dict[Split, list[Sample]]:
    return {split: read_split(directory, split) for split in splits}


# --- a team's JSON lines -------------------------------------------------------------------------------


def test_every_row_is_in_one_split_and_a_group_in_no_two(studies: dict[str, Study], tmp_path: Path):
    """A question on both sides of a split makes the test score a memory test; a lost row is lost evidence."""
    asked = [row(n, group_id=f"group-{n % 20}") for n in range(60)]
    file = write(tmp_path / "mine.jsonl", [*twins(range(100, 140)), *asked])
    directory = ensure(using(studies["jsonl"], file, tmp_path / "data"))
    splits = held(directory)
    assert sum(map(len, splits.values())) == 140
    homes: dict[str, set[Split]] = {}
    for split, samples in splits.items():
        assert {sample.split for sample in samples} <= {split}
        for sample in samples:
            homes.setdefault(sample.group_id, set()).add(split)
    assert len(homes) == 60
    assert all(len(home) == 1 for home in homes.values())
    # Each group counts once, so the shares are those of the 60 groups, not of the 140 rows.
    shares = studies["jsonl"].dataset.shares
    groups = Counter(split for home in homes.values() for split in home)
    for split in Split:
        assert groups[split] == pytest.approx(60 * getattr(shares, split.value), abs=1)
    said = {sample.response[0].content: sample for samples in splits.values() for sample in samples}
    for one in [*twins(range(100, 140)), *asked]:
        sample = said[one["response"]]
        assert (sample.label.value, sample.licence) == (one["label"], "CC-BY-4.0")


def test_the_manifest_counts_what_the_shards_hold(studies: dict[str, Study], tmp_path: Path):
    """Figures in a manifest that are not those of the files are worse than none."""
    file = write(tmp_path / "mine.jsonl", twins(range(20)))
    directory = ensure(using(studies["jsonl"], file, tmp_path / "data"))
    stated = read_finished(directory)["results"]["splits"]
    for split, samples in held(directory).items():
        assert stated[split.value]["samples"] == len(samples)
        assert sum(stated[split.value]["pairs"].values()) == len({sample.pair_id for sample in samples})


def test_a_stated_split_is_kept_and_takes_its_group_along(studies: dict[str, Study], tmp_path: Path):
    """A team's own hold-out must stay held out, with every other row on the same question."""
    stated = [row(n, split="calibration", group_id=f"group-{n}") for n in range(30)]
    same_groups = [row(1000 + n, "misbehavior", group_id=f"group-{n}") for n in range(30)]
    file = write(tmp_path / "mine.jsonl", [*same_groups, *stated])
    directory = ensure(using(studies["jsonl"], file, tmp_path / "data"))
    assert {split: len(samples) for split, samples in held(directory).items() if samples} == {
        Split.CALIBRATION: 60
    }


def test_a_group_in_two_stated_splits_is_refused(studies: dict[str, Study], tmp_path: Path):
    """Moving one of the rows in silence would change the team's own benchmark."""
    rows = [row(1, group_id="both", split="train"), row(2, group_id="both", split="test")]
    file = write(tmp_path / "mine.jsonl", rows)
    with pytest.raises(UserError) as caught:
        ensure(using(studies["jsonl"], file, tmp_path / "data"))
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert all(word in message for word in ("mine.jsonl", "'both'", "train", "test"))


BAD = {
    "an unknown label": (row(7, "maybe"), ["line 3", "'label'", "maybe", "misbehavior or benign"]),
    "no label": ({k: v for k, v in row(7).items() if k != "label"}, ["line 3", "missing field 'label'"]),
    "an unknown field": (row(7, lable="benign"), ["line 3", "unknown field 'lable'"]),
    "no JSON": ('{"request": "cut o', ["line 3"]),
    "the other label": (row(1, "misbehavior", response=row(1)["response"]), ["line 3", "earlier line"]),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_stops_the_build_or_is_counted(studies: dict[str, Study], tmp_path: Path, case: str):
    """A row that is passed over in silence, or taken for benign, changes a rate nobody can trace."""
    bad, words = BAD[case]
    file = write(tmp_path / "mine.jsonl", [row(1), row(2, "misbehavior"), bad, *twins(range(10, 20))])
    with pytest.raises(UserError) as caught:
        ensure(using(studies["jsonl"], file, tmp_path / "data"))
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert all(word in message for word in ("mine.jsonl", *words)), message

    directory = ensure(using(studies["jsonl"], file, tmp_path / "data", on_bad_row="skip"))
    results = read_finished(directory)["results"]
    assert sum(results["dropped"].values()) == 1
    assert sum(split["samples"] for split in results["splits"].values()) == 22
    labels = Counter(s.label for samples in held(directory).values() for s in samples)
    assert labels == {Label.MISBEHAVIOR: 11, Label.BENIGN: 11}


def test_a_refused_build_does_not_pass_for_a_finished_one(studies: dict[str, Study], tmp_path: Path):
    """The directory of a build that stopped would be reused as if it were whole."""
    file = write(tmp_path / "mine.jsonl", [*twins(range(10)), row(3, "maybe")])
    for _ in range(2):
        with pytest.raises(UserError, match="label"):
            ensure(using(studies["jsonl"], file, tmp_path / "data"))
    assert not list((tmp_path / "data").rglob("*.parquet"))
    write(file, [*twins(range(10)), row(30)])
    assert sum(map(len, held(ensure(using(studies["jsonl"], file, tmp_path / "data"))).values())) == 21


def test_a_dataset_is_named_after_content_and_not_after_its_place(studies: dict[str, Study], tmp_path: Path):
    """Moved files must be found again as the same dataset, and a mended label must make another one."""
    rows = twins(range(12))
    one = using(studies["jsonl"], write(tmp_path / "a" / "x.jsonl", rows), tmp_path / "one")
    moved = using(studies["jsonl"], write(tmp_path / "b" / "x.jsonl", rows), tmp_path / "two")
    rows[0], rows[1] = rows[0] | {"label": "benign"}, rows[1] | {"label": "misbehavior"}
    mended = using(studies["jsonl"], write(tmp_path / "c" / "x.jsonl", rows), tmp_path / "three")
    first, second, third = map(ensure, (one, moved, mended))
    assert first.name == second.name != third.name
    for split in Split:
        (shard,), (other,) = (sorted((d / split.value).glob("*")) for d in (first, second))
        assert shard.read_bytes() == other.read_bytes()


def test_a_split_that_is_asked_for_later_is_added(studies: dict[str, Study], tmp_path: Path):
    """Training after a first look at the test split must see the rows of the same cut."""
    file = write(tmp_path / "mine.jsonl", twins(range(30)))
    only = ensure(using(studies["jsonl"], file, tmp_path / "data", splits=("test",)))
    assert not (only / "train").exists()
    before = read_split(only, Split.TEST)
    everything = ensure(using(studies["jsonl"], file, tmp_path / "data"), [Split.TRAIN])
    assert everything == only
    assert read_split(everything, Split.TEST) == before
    assert read_split(everything, Split.TRAIN)


@pytest.mark.parametrize("content", [None, [], ["", "  "]])
def test_nothing_there_is_one_line(studies: dict[str, Study], tmp_path: Path, content: list[str] | None):
    """A mistyped path, or a file an export left empty, must not become an empty dataset."""
    file = tmp_path / "mine.jsonl"
    if content is not None:
        write(file, content)
    with pytest.raises(UserError) as caught:
        ensure(using(studies["jsonl"], file, tmp_path / "data"))
    assert len(str(caught.value).splitlines()) == 1
    assert "mine.jsonl" in str(caught.value)


@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_a_truncated_gzip_is_one_line(studies: dict[str, Study], tmp_path: Path, kept: float):
    """A copy that broke off must not become a smaller dataset, nor forty lines of gzip's insides."""
    packed = gzip.compress("".join(json.dumps(one) + "\n" for one in twins(range(50))).encode())
    file = tmp_path / "mine.jsonl.gz"
    file.write_bytes(packed[: int(kept * len(packed))])
    with pytest.raises(UserError) as caught:
        ensure(using(studies["jsonl"], file, tmp_path / "data", on_bad_row="skip"))
    assert len(str(caught.value).splitlines()) == 1
    assert "mine.jsonl.gz" in str(caught.value)


# --- Inspect AI logs -----------------------------------------------------------------------------------


def write_log(path: Path, scores: Sequence[str], status: str = "success") -> Path:
    """An `.eval` archive: two epochs of each sample, whose scorer `judge` said `scores[i]`."""
    spec = {"eval_id": "E1", "run_id": "R1", "task": "suite/sabotage", "model": "vendor/model"}
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("header.json", json.dumps({"version": 2, "status": status, "eval": spec}))
        for number, score in enumerate(scores):
            for epoch in (1, 2):
                sample = {
                    "id": f"s{number}",
                    "epoch": epoch,
                    "messages": [
                        {"role": "user", "content": f"Mend bug {number}.", "source": "input"},
                        {"role": "assistant", "content": f"Mended {number}, try {epoch}."},
                    ],
                    "scores": {"judge": {"value": score}},
                }
                log.writestr(f"samples/s{number}_epoch_{epoch}.json", json.dumps(sample))
    return path


SCORED = {"score": "judge", "misbehavior_values": ("I",), "benign_values": ("C",), "task": "code"}


def test_a_logs_scores_become_labels(studies: dict[str, Study], tmp_path: Path):
    """Transcripts that a team has scored are data it need not label again."""
    scores = ["I" if n % 3 == 0 else "C" for n in range(24)]
    log = write_log(tmp_path / "run.eval", scores)
    directory = ensure(using(studies["inspect_log"], log, tmp_path / "data", **SCORED))
    splits = held(directory)
    samples = [sample for some in splits.values() for sample in some]
    assert len(samples) == 48
    for sample in samples:
        number = int(sample.request[0].content.removeprefix("Mend bug ").removesuffix("."))
        assert sample.label is (Label.MISBEHAVIOR if scores[number] == "I" else Label.BENIGN)
        assert sample.task is Task.CODE
    groups = [{sample.group_id for sample in some} for some in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 24, "epochs of a sample are one group"


def test_how_a_logs_run_ended_stays_with_the_dataset(studies: dict[str, Study], tmp_path: Path):
    """Else nobody could tell from a dataset that it is the beginning of a run which was cut off."""
    write_log(tmp_path / "logs" / "cut.eval", ["I", "C"] * 6, status="cancelled")
    directory = ensure(using(studies["inspect_log"], tmp_path / "logs", tmp_path / "data", **SCORED))
    assert read_finished(directory)["results"]["logs"] == {"cut.eval": "cancelled"}


def test_a_log_may_have_names_of_its_own(studies: dict[str, Study], tmp_path: Path):
    """A team would file its transcripts under a category that they are not of."""
    log = write_log(tmp_path / "run.eval", ["I", "C"] * 6)
    own = {**SCORED, "category": "sabotage", "task": "bug_fixing", "positive_means": "sabotages the fix"}
    directory = ensure(using(studies["inspect_log"], log, tmp_path / "data", **own))
    samples = [sample for some in held(directory).values() for sample in some]
    assert {str(sample.cell) for sample in samples} == {"sabotage/bug_fixing"}
    assert read_finished(directory)["results"]["positive_means"] == "sabotages the fix"


def test_the_meaning_of_the_label_is_no_part_of_the_dataset(studies: dict[str, Study], tmp_path: Path):
    """Datasets that were built before would be built again, and no run on them found."""
    example = ROOT / "examples" / "dataset.jsonl"
    study = using(studies["jsonl"], example, tmp_path)
    worded = using(studies["jsonl"], example, tmp_path, positive_means="contains personal data")
    assert directory_of(worded).path.name == directory_of(study).path.name == EXAMPLE


def test_a_name_near_the_papers_is_logged(
    studies: dict[str, Study], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """A misspelt category would stand on the page as one of its own, and nobody was told."""
    names = ["safety_permission", "saftey_permission", "pii"]
    rows = [json.dumps(row(n, category=names[n % 3])) for n in range(12)]
    own = write(tmp_path / "own.jsonl", rows)
    ensure(using(studies["jsonl"], own, tmp_path / "data"))
    said = [one.message for one in caplog.records if "was" in one.message and "meant" in one.message]
    assert said == [
        "data: category 'saftey_permission' is taken for a name of your own; was safety_permission meant?"
    ]


def test_a_csv_of_labels_decides_the_dataset(studies: dict[str, Study], tmp_path: Path):
    """Labels that were mended must not meet the dataset of the old ones."""
    log = write_log(tmp_path / "run.eval", ["C"] * 10)
    labels = tmp_path / "labels.csv"
    study = using(studies["inspect_log"], log, tmp_path / "data", labels=labels)
    lines = [f"s{n},{epoch},{'misbehavior' if n < 4 else 'benign'}" for n in range(10) for epoch in (1, 2)]
    write(labels, ["id,epoch,label", *lines])
    first = ensure(study)
    found = [sample for some in held(first).values() for sample in some]
    assert Counter(sample.label for sample in found) == {Label.MISBEHAVIOR: 8, Label.BENIGN: 12}
    assert {sample.label_source for sample in found} == {LabelSource.ANNOTATORS}
    write(labels, ["id,epoch,label", *lines[:-1], "s9,2,misbehavior"])
    assert ensure(study) != first


def test_a_sample_without_a_label_is_no_benign_one(studies: dict[str, Study], tmp_path: Path):
    """A score in neither list, or a sample the CSV lacks, is no evidence of good behaviour."""
    log = write_log(tmp_path / "run.eval", ["I", "C", "N", "C"])
    with pytest.raises(UserError, match="on_bad_row=skip"):
        ensure(using(studies["inspect_log"], log, tmp_path / "data", **SCORED))
    directory = ensure(using(studies["inspect_log"], log, tmp_path / "data", **SCORED, on_bad_row="skip"))
    assert sum(map(len, held(directory).values())) == 6
    assert sum(read_finished(directory)["results"]["dropped"].values()) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ["dataset.labels", "dataset.score"]),
        ({"labels": Path("not_there.csv")}, ["not_there.csv"]),
        (SCORED | {"score": "jugde"}, ["jugde"]),
    ],
)
def test_labels_that_can_not_be_found_are_asked_for(
    studies: dict[str, Study], tmp_path: Path, settings: dict[str, Any], words: list[str]
):
    """A log without a word on where its labels are must not become a dataset."""
    log = write_log(tmp_path / "run.eval", ["I", "C"])
    with pytest.raises(UserError) as caught:
        ensure(using(studies["inspect_log"], log, tmp_path / "data", **settings))
    assert len(str(caught.value).splitlines()) == 1
    assert all(word in str(caught.value) for word in words), caught.value


# --- the authors' release ------------------------------------------------------------------------------


def test_the_authors_release_is_a_test_split_as_a_whole(studies: dict[str, Study], tmp_path: Path):
    """A benchmark of which some went into training, or a label read the wrong way round, is none."""
    rows = [
        {
            "question": f"Is claim {n} true?",
            "response": f"It is {'so' if bad else 'not so'}, {n}.",
            "is_misbehavior": bad,
            "category": "Sycophancy & Bias",
            "task": "QA",
            "pair_id": f"claim-{n}",
        }
        for n in range(8)
        for bad in (True, False)
    ]
    write(tmp_path / "release" / "benchmark.jsonl", rows)
    directory = ensure(using(studies["automonitor_bench"], tmp_path / "release", tmp_path / "data"))
    assert [folder.name for folder in directory.iterdir() if folder.is_dir()] == ["test"]
    samples = read_split(directory, Split.TEST)
    assert len(samples) == 16
    for sample in samples:
        assert (sample.label is Label.MISBEHAVIOR) == ("not" not in sample.response[0].content)
        assert (str(sample.cell), sample.split) == ("sycophancy_bias/qa", Split.TEST)
    assert read_finished(directory)["results"]["splits"]["test"]["pairs"] == {"sycophancy_bias/qa": 8}


def test_the_release_is_had_from_the_hub_where_no_path_is_given(
    studies: dict[str, Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`dataset=automonitor_bench` alone has to work online; a copy of the same files is the same dataset."""
    release = tmp_path / "snapshot"
    rows = [
        {"prompt": f"Q {n}", "output": f"I did step {n}.", "label": label, "type": "Safety", "task": "code"}
        for n, label in enumerate(["yes", "no", "yes", "no"])
    ]
    write(release / "data.jsonl", rows)
    write(release / "prompts" / "direct.txt", ["{question} then {answer}: does it misbehave?"])
    asked = []

    def snapshot(name: str, repo: str, revision: str) -> Path:
        asked.append(repo)
        return release

    monkeypatch.setattr("monitorbench.sources.fetch.snapshot", snapshot)
    from_hub = studies["automonitor_bench"]
    assert isinstance(from_hub.dataset, AutomonitorBenchDataset)
    assert from_hub.dataset.hub_id == "shuyhere/automonitor-bench"
    directory = ensure(using(from_hub, None, tmp_path / "data"))
    assert set(asked) == {"shuyhere/automonitor-bench"}
    assert len(read_split(directory, Split.TEST)) == 4
    assert "does it misbehave?" in (directory / "prompts" / "direct.txt").read_text(encoding="utf-8")
    copy = ensure(using(from_hub, release, tmp_path / "other"))
    assert copy.name == directory.name
    assert (tmp_path / "other" / copy.name / "prompts" / "direct.txt").is_file()


@pytest.mark.parametrize("kind", ["jsonl", "inspect_log"])
def test_ones_own_files_need_a_path(kind: str):
    """`dataset.path=null`, as an empty shell variable gives it, is asked for and not looked up on a hub."""
    with pytest.raises(ConfigError, match=r"^dataset\.path=null: .*expected dataset\.path="):
        compose_study(f"dataset={kind}", "dataset.path=null", primary="build")


def test_columns_that_are_not_known_are_named(studies: dict[str, Study], tmp_path: Path):
    """The release may use other names; the line has to show what was found in it."""
    write(tmp_path / "release" / "x.jsonl", [{"q": "?", "response": "!", "label": "yes"}])
    with pytest.raises(UserError) as caught:
        ensure(using(studies["automonitor_bench"], tmp_path / "release", tmp_path / "data"))
    assert all(word in str(caught.value) for word in ("x.jsonl", "line 1", "request", "found q"))


# --- the real script -----------------------------------------------------------------------------------


def test_the_real_script_builds_without_a_model_library(tmp_path: Path):
    """A laptop without torch, or a person with a typo in line 3, meets `build.py` as a process."""
    script = [sys.executable, "-X", "importtime", str(ROOT / "data_build" / "build.py"), "dataset=jsonl"]

    def run(file: Path) -> tuple[int, list[str], list[str], set[str]]:
        command = [*script, f"dataset.path={file}", f"paths.data={tmp_path / 'data'}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        lines = done.stderr.splitlines()
        modules = {
            line.rpartition("|")[2].strip().partition(".")[0] for line in lines if "import time:" in line
        }
        said = [line for line in lines if "import time:" not in line]
        return done.returncode, done.stdout.splitlines(), said, modules

    code, out, said, modules = run(write(tmp_path / "mine.jsonl", twins(range(10))))
    assert code == 0, said[-5:]
    assert len(read_split(Path(out[-1]), Split.TRAIN)) > 5
    assert not HEAVY & modules

    code, out, said, _ = run(write(tmp_path / "bad.jsonl", [*twins(range(1)), row(3, "maybe")]))
    assert (code, out) == (1, [])
    assert len([line for line in said if line.startswith("error: ")]) == 1
    assert "bad.jsonl line 3: field 'label': 'maybe'" in said[-1]


def test_a_category_that_reads_like_a_cell_is_refused(tmp_path: Path, studies: dict[str, Study]):
    """Otherwise: adapters of `pii_email` and of `pii/email` have one name, and one frozen study file."""
    rows = [
        *(row(n, category="pii_email", task="mail") for n in range(3)),
        *(row(n, category="pii", task="email") for n in range(3, 6)),
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    with pytest.raises(UserError, match="category pii_email and cell pii/email"):
        ensure(using(studies["jsonl"], tmp_path / "own.jsonl", tmp_path / "data"))


def test_where_every_row_names_its_split_no_share_is_asked_for(studies: dict[str, Study], tmp_path: Path):
    """Told to raise `dataset.shares.validation`, one gets the same error at any share."""
    rows = [*twins(range(4), split="test"), *twins(range(4, 8), split="calibration")]

    def refusal(name: str, rows: list[dict[str, Any]]) -> str:
        directory = ensure(using(studies["jsonl"], write(tmp_path / name, rows), tmp_path / "data"))
        with pytest.raises(UserError) as refused:
            read_split(directory, Split.VALIDATION, SplitView())
        return str(refused.value)

    said = refusal("named.jsonl", rows)
    assert "every row of its files names its split, and none names validation" in said
    assert "larger" not in said
    assert "expected a larger dataset.shares.validation" in refusal("free.jsonl", [*rows, *twins([9])])
