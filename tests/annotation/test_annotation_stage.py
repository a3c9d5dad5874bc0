"""The annotation stage on files: what annotators get, what they may send back, and what is kept."""

import csv
import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from drawing import draws
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sealed import seal

from monitorbench.annotation.files import (
    COLUMNS,
    AnnotationItem,
    csv_batch,
    label_studio_config,
    label_studio_tasks,
    neutralise,
    read_returned,
    restore,
)
from monitorbench.annotation.labels import AnnotatorChoice
from monitorbench.annotation.stage import annotate
from monitorbench.config.base import ConfigError, UserError
from monitorbench.config.labelling import Annotation
from monitorbench.config.study import Study
from monitorbench.corpus.store import read_split, to_table, write_split
from monitorbench.records import Category, Construction, Label, LabelSource, Sample, Split
from monitorbench.runs.directory import read_manifest

N_PAIRS = 12
HOSTILE = '=HYPERLINK("http://x.invalid","open")\n<b onclick="run()">bold</b>\u2028$request; "quoted", end'


class Bench:
    """A batch of 24 items exported to a folder, and ways to fill it in."""

    def __init__(self, folder: Path, study: Study, samples: list[Sample]) -> None:
        self.folder = folder
        self._study = study.model_copy(
            update={"paths": study.paths.model_copy(update={"data": folder / "data"})}
        )
        self.candidates = folder / "candidates.jsonl"
        self.candidates.write_text("".join(sample.model_dump_json() + "\n" for sample in samples))
        self.samples = {sample.id: sample for sample in samples}
        self.batch = self.run(action="export")
        rows = (self.batch / "key.jsonl").read_text().rstrip("\n").split("\n")
        key = [json.loads(row) for row in rows]
        self.prior = {row["item"]: row["prior"] for row in key}
        self.items = sorted(self.prior)

    def settings(self, **changed: Any) -> Annotation:
        return Annotation(
            **{
                "action": "import",
                "annotators": ("ana", "ben"),
                "seed": 0,
                "split": "test",
                "candidates": self.candidates,
                "samples_per_cell": None,
                "guidelines": 'Is it "misbehavior" & why <b>?',
                "returned": (),
                "adjudicated": None,
                "resamples": 200,
                **changed,
            }
        )

    def run(self, *, at: Path | None = None, **changed: Any) -> Path:
        settings = self.settings(**changed)
        study = self._study
        if settings.action == "import":
            study = study.model_copy(update={"run": at or self.batch})
        elif at is not None:
            study = study.model_copy(update={"paths": study.paths.model_copy(update={"data": at})})
        return annotate(study, settings)

    def view(self, subset: str) -> None:
        """Cut the dataset's test split from now on."""
        dataset = self._study.dataset
        cut = dataset.model_copy(update={"test": dataset.test.model_copy(update={"subset": (subset,)})})
        self._study = self._study.model_copy(update={"dataset": cut})

    def rows(self, reader: str) -> list[dict[str, str]]:
        """The batch of a reader, as a spreadsheet shows it."""
        return _read_csv(self.batch / "batches" / reader / "batch.csv")

    def csv(self, reader: str, labels: dict[str, str], name: str = "") -> Path:
        """A reader's CSV, filled in."""
        rows = [row | {"label": labels[row["item"]]} for row in self.rows(reader)]
        return self.write(name or f"{reader}.csv", rows)

    def write(self, name: str, rows: list[dict[str, str]], delimiter: str = ",") -> Path:
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        path = self.folder / name
        path.write_bytes(stream.getvalue().encode("utf-8-sig"))
        return path

    def label_studio(self, reader: str, labels: dict[str, str]) -> Path:
        """A reader's tasks, as Label Studio exports them."""
        tasks = json.loads((self.batch / "batches" / reader / "tasks.json").read_text())
        for task in tasks:
            task["annotations"] = [_annotation(labels[task["data"]["item"]])]
        path = self.folder / f"{reader}.json"
        path.write_text(json.dumps(tasks))
        return path

    def refused(self, caplog: pytest.LogCaptureFixture, *files: Path, **changed: Any) -> str:
        """Every line that an import of these files is refused with; nothing may have been written."""
        before = sorted((self.folder / "data").iterdir())
        caplog.clear()
        with caplog.at_level(logging.ERROR), pytest.raises(UserError) as caught:
            self.run(returned=files, **changed)
        assert sorted((self.folder / "data").iterdir()) == before, "a refused import left files"
        lines = [str(caught.value), *(record.getMessage() for record in caplog.records)]
        assert all("\n" not in line for line in lines)
        return "\n".join(lines)


def _annotation(label: str) -> dict[str, Any]:
    value = {"type": "choices", "from_name": "label", "to_name": "response", "value": {"choices": [label]}}
    note = {"type": "textarea", "from_name": "note", "to_name": "response", "value": {"text": ["seen"]}}
    return {"completed_by": 1, "was_cancelled": False, "result": [value, note]}


def _read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


@pytest.fixture(scope="module")
def study(compose_study: Callable[..., Study]) -> Study:
    return compose_study("build")


@pytest.fixture
def bench(tmp_path: Path, study: Study, make_sample: Callable[..., Sample]) -> Bench:
    categories = [Category.SYCOPHANCY_BIAS, Category.SAFETY_PERMISSION]
    samples = [
        make_sample(
            f"question {i}",
            HOSTILE
            if i == 0 and label is Label.BENIGN
            else f"{'+' if label is Label.BENIGN else '@'} reply {i}",
            pair_id=f"PAIRNAME{i}",
            group_id=f"GROUPNAME{i}",
            category=categories[i % 2],
            subcategory="SUBNAME",
            cue="CUENAME",
            source="SOURCENAME",
            label=label,
        )
        for i in range(N_PAIRS)
        for label in Label
    ]
    return Bench(tmp_path, study, samples)


def _labels(bench: Bench, **changed: AnnotatorChoice) -> dict[str, str]:
    """The prior labels, but for the items (by number) that are changed."""
    return bench.prior | {bench.items[int(number[1:])]: str(label) for number, label in changed.items()}


def test_a_batch_tells_nothing_but_the_texts(bench: Bench) -> None:
    """An annotator who can see or infer the label confirms it, and κ measures nothing."""
    for reader, other in (("ana", "ben"), ("ben", "ana")):
        folder = bench.batch / "batches" / reader
        assert {file.name for file in folder.iterdir()} == {
            "batch.csv",
            "tasks.json",
            "labelling.xml",
            "guidelines.txt",
        }
        written = "".join(file.read_text() for file in folder.iterdir())
        for hidden in ("PAIRNAME", "GROUPNAME", "SOURCENAME", "SUBNAME", "CUENAME", f"-{other}"):
            assert hidden not in written
        for content_id in bench.samples:
            assert content_id not in written
        tables = [(folder / name).read_text() for name in ("batch.csv", "tasks.json")]
        assert not any(str(label) in table for label in Label for table in tables)
        rows = bench.rows(reader)
        assert list(rows[0]) == list(COLUMNS)
        assert {(row["label"], row["note"], row["batch"]) for row in rows} == {("", "", f"batch-{reader}")}
        tasks = json.loads((folder / "tasks.json").read_text())
        assert {tuple(task) for task in tasks} == {("data",)}
        assert [task["data"]["item"] for task in tasks] == [row["item"] for row in rows]
        assert sorted(row["item"] for row in rows) == bench.items
    assert [row["item"] for row in bench.rows("ana")] != [row["item"] for row in bench.rows("ben")]


def test_export_twice_gives_the_same_bytes_and_spares_what_was_filled_in(
    bench: Bench, tmp_path: Path
) -> None:
    """A batch sent out once more must not be another; labels typed into it must not be lost."""
    again = bench.run(action="export", at=tmp_path / "elsewhere")
    assert again.name == bench.batch.name
    files = [f.relative_to(again) for folder in ("batches", ".") for f in (again / folder).rglob("*.*")]
    compared = [f for f in files if f.suffix in (".csv", ".xml", ".txt", ".jsonl") or f.name == "tasks.json"]
    assert len(compared) >= 9
    for file in compared:
        assert (again / file).read_bytes() == (bench.batch / file).read_bytes(), file
    filled = bench.batch / "batches" / "ana" / "batch.csv"
    filled.write_text("work of a day")
    assert bench.run(action="export") == bench.batch
    assert filled.read_text() == "work of a day"
    assert bench.run(action="export", seed=1) != bench.batch
    assert bench.run(action="export", guidelines="Other.") != bench.batch


@given(st.one_of(st.text(), st.text(alphabet="=+-@\t\r\n'＝x")))
def test_no_cell_starts_a_formula_and_the_text_comes_back(text: str) -> None:
    """A judged response that begins with = would run in the annotator's spreadsheet."""
    cell = neutralise(text)
    assert not cell.startswith(tuple("=+-@\t\r\n＝＋－＠"))
    assert restore(cell) == text
    (row,) = csv.DictReader(
        io.StringIO(csv_batch([AnnotationItem("item-1", text, text)], "a").decode("utf-8-sig"), newline="")
    )
    assert restore(row["request"]) == restore(row["response"]) == text


@given(st.text(), st.sampled_from(list(AnnotatorChoice)))
def test_both_formats_bring_the_text_and_the_label_back(
    tmp_path_factory: pytest.TempPathFactory, text: str, choice: AnnotatorChoice
) -> None:
    """A parser that trips over a strange text loses that item, or shifts all labels after it."""
    folder = tmp_path_factory.getbasetemp()
    item = AnnotationItem("item-1", text, "plain")
    rows = list(csv.reader(io.StringIO(csv_batch([item], "ana").decode("utf-8-sig"), newline="")))
    rows[1][COLUMNS.index("label")] = choice
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter="|").writerows([*rows, [""] * len(COLUMNS)])
    (folder / "x.csv").write_bytes(stream.getvalue().encode())
    (task,) = json.loads(label_studio_tasks([item], "ana"))
    (folder / "x.json").write_text(json.dumps([{**task, "annotations": [_annotation(choice)]}]))
    for name in ("x.csv", "x.json"):
        (row,) = read_returned(folder / name)
        assert (row.item, row.reader, row.label) == ("item-1", "ana", choice)
        assert (row.request, row.response) == (text, "plain")


@draws(40)
@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_one_clear_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """A file that was saved wrongly has to be named, not end in a traceback."""
    for name in ("any.csv", "any.json"):
        for start in (b"", b"item,batch,label\n", b"[{", b'[{"data":{}}'):
            path = tmp_path_factory.getbasetemp() / name
            path.write_bytes(start + content)
            said = _said(path)
            assert said is None or str(path) in said
            assert said is None or "\n" not in said


def test_label_studio_shows_text_as_text() -> None:
    """Judged HTML that is rendered can load pictures, run scripts and hide its own words."""
    root = ElementTree.fromstring(label_studio_config('Say "yes" & <no>'))
    shown = {node.get("name"): node for node in root.iter("Text")}
    assert {name: node.get("value") for name, node in shown.items()} == {
        "request": "$request",
        "response": "$response",
    }
    assert {node.get("valueType") for node in shown.values()} == {"text"}
    assert not list(root.iter("HyperText"))
    assert [node.get("value") for node in root.iter("Choice")] == list(AnnotatorChoice)
    assert next(root.iter("Header")).get("value") == 'Say "yes" & <no>'


def test_agreement_is_kept_and_the_rest_goes_to_a_third_reader(bench: Bench) -> None:
    """The corpus must hold what annotators agree on, whole and readable, and nothing else."""
    ana = bench.csv("ana", _labels(bench))
    ben = bench.label_studio(
        "ben", _labels(bench, _0=_other(bench, 0), _1=_other(bench, 1), _2=AnnotatorChoice.UNSURE)
    )
    made = bench.run(returned=(ben, ana))
    results = read_manifest(made)["results"]
    assert {key: results[key] for key in ("n_items", "n_agreed", "n_disagreed", "n_unsure", "n_kept")} == {
        "n_items": 24,
        "n_agreed": 21,
        "n_disagreed": 2,
        "n_unsure": 1,
        "n_kept": 21,
    }
    assert 0.7 < results["kappa"] < 0.9
    low, high = results["kappa_ci"]
    assert low < results["kappa"] < high
    assert results["agreement_with_prior"] == 1
    assert set(results["cells"]) == {"sycophancy_bias/qa", "safety_permission/qa"}
    assert sum(cell["n_items"] for cell in results["cells"].values()) == 24
    kept = read_split(made, Split.TEST)
    assert [Sample.model_validate_json(line) for line in _lines(made / "test.jsonl")] == sorted(
        kept, key=lambda one: _item_of(made)[one.id]
    )
    open_items = set(bench.items[:3])
    assert {_item_of(made)[one.id] for one in kept} == set(bench.items) - open_items
    for one in kept:
        before = bench.samples[one.id]
        assert (one.label, one.source, one.licence) == (before.label, before.source, before.licence)
        assert one.label_source is LabelSource.ANNOTATORS
        assert one.construction is Construction.ANNOTATION
        assert one.split is Split.TEST
    blind = _read_csv(made / "adjudication.csv")
    assert {row["item"] for row in blind} == open_items
    assert {row["label"] for row in blind} == {""}
    assert list(blind[0]) == list(COLUMNS)


def test_the_third_readers_label_wins_but_kappa_stays(bench: Bench) -> None:
    """κ after adjudication would say that everyone agreed."""
    changed = {f"_{i}": _other(bench, i) for i in range(3)}
    files = (bench.csv("ana", _labels(bench)), bench.csv("ben", _labels(bench, **changed)))
    made = bench.run(returned=files)
    rows = _read_csv(made / "adjudication.csv")
    decided = {
        bench.items[0]: bench.prior[bench.items[0]],
        bench.items[1]: str(_other(bench, 1)),
        bench.items[2]: "unsure",
    }
    third = bench.write("third.csv", [row | {"label": decided[row["item"]]} for row in rows])
    after = bench.run(returned=files, adjudicated=third)
    assert after != made
    before, results = (read_manifest(folder)["results"] for folder in (made, after))
    assert results["kappa"] == before["kappa"]
    assert (results["n_kept"], results["n_adjudicated"], results["n_open"]) == (23, 2, 1)
    assert (results["n_prior"], results["n_same_as_prior"]) == (23, 22)
    kept = {_item_of(after)[one.id]: one.label for one in read_split(after, Split.TEST)}
    assert {item: kept.get(item) for item in decided} == decided | {bench.items[2]: None}
    assert [row["item"] for row in _read_csv(after / "adjudication.csv")] == [bench.items[2]]
    outcomes = {row["item"]: row["outcome"] for row in map(json.loads, _lines(after / "labels.jsonl"))}
    assert sorted(outcomes) == bench.items, "an item is gone"
    assert outcomes[bench.items[0]] == "adjudicated"


def test_the_order_of_files_does_not_matter_and_an_import_is_reused(bench: Bench) -> None:
    """The same labels have to be the same corpus."""
    ana, ben = bench.csv("ana", _labels(bench)), bench.csv("ben", _labels(bench))
    made = bench.run(returned=(ana, ben))
    stamp = (made / "manifest.json").stat().st_mtime_ns
    assert bench.run(returned=(ben, ana)) == made
    assert (made / "manifest.json").stat().st_mtime_ns == stamp
    assert read_manifest(made)["results"]["kappa"] == 1


def _broken(bench: Bench) -> Iterator[tuple[str, list[dict[str, str]], list[str]]]:
    rows = [row | {"label": bench.prior[row["item"]]} for row in bench.rows("ben")]
    last = rows[-1]["item"]
    yield (
        "unknown item",
        [*rows[:-1], rows[-1] | {"item": "item-000"}],
        ["row 25", "item-000", "never exported"],
    )
    yield "missing item", rows[:-1], [last, "missing", "put its row back"]
    yield "no label", [*rows[:-1], rows[-1] | {"label": " "}], ["row 25", last, "no label", "unsure"]
    yield "another label", [*rows[:-1], rows[-1] | {"label": "bad"}], ["row 25", last, "'bad'", "benign"]
    yield "an item twice", [*rows, rows[3]], ["row 26", rows[3]["item"], "twice", "row 5"]
    yield "another batch", [*rows[:-1], rows[-1] | {"batch": "batch-eve"}], ["row 25", "'eve'", "ana, ben"]
    yield "no id", [*rows[:-1], rows[-1] | {"item": ""}], ["row 25", "no item id"]
    sorted_apart = sorted(row["item"] for row in rows)
    shifted = [row | {"item": item} for row, item in zip(rows, sorted_apart, strict=True)]
    yield "columns sorted apart", shifted, ["the text is not that of", "sorted apart"]


def test_a_faulty_file_is_refused_naming_file_row_and_remedy(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """A problem that is passed over puts a wrong label in the corpus or takes an item out of it."""
    ana = bench.csv("ana", _labels(bench))
    for name, rows, words in _broken(bench):
        said = bench.refused(caplog, ana, bench.write("ben.csv", rows))
        assert "ben.csv" in said, name
        lines = said.split("\n")
        assert any(all(word in line for word in words) for line in lines), (name, said)


def test_every_problem_is_named_not_only_the_first(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Mending one row per attempt, in a file of a thousand, is how people give up."""
    ana = bench.csv("ana", _labels(bench))
    rows = [
        row | {"label": "?" if i % 2 else bench.prior[row["item"]]} for i, row in enumerate(bench.rows("ben"))
    ]
    said = bench.refused(caplog, ana, bench.write("ben.csv", rows))
    assert len(said.split("\n")) == 12
    assert "(and 11 more" in said


def test_files_that_are_not_there_or_not_what_they_should_be(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """The person who imports rarely is the one who saved the file: the line has to say what to ask for."""
    ana, ben = bench.csv("ana", _labels(bench)), bench.csv("ben", _labels(bench))
    assert "'ben'" in bench.refused(caplog, ana)
    assert "given twice" in bench.refused(caplog, ana, ana, ben)
    assert "none.csv: no such file" in bench.refused(caplog, ana, bench.folder / "none.csv")
    with pytest.raises(ConfigError, match=r"annotation\.returned"):
        bench.run()
    utf16 = bench.folder / "utf16.csv"
    utf16.write_bytes(ben.read_bytes().decode("utf-8-sig").encode("utf-16"))
    assert "CSV UTF-8" in bench.refused(caplog, ana, utf16)
    sheet = bench.folder / "ben.xlsx"
    sheet.write_text("x")
    assert "expected a .csv file" in bench.refused(caplog, ana, sheet)
    headless = bench.folder / "headless.csv"
    headless.write_text(ben.read_text(encoding="utf-8-sig").partition("\n")[2])
    assert "row 1: expected the columns item, batch, label" in bench.refused(caplog, ana, headless)
    flat = bench.folder / "flat.json"
    flat.write_text(json.dumps([{"item": "item-1", "label": "benign"}]))
    assert "task 1: not Label Studio's format" in bench.refused(caplog, ana, flat)


def test_label_studios_own_faults(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """A skipped task has no label, and one that two people labelled has no single one."""
    ana, ben = bench.csv("ana", _labels(bench)), bench.label_studio("ben", _labels(bench))
    tasks = json.loads(ben.read_text())
    for task, change, words in (
        (0, [_annotation("benign") | {"was_cancelled": True}], ["task 1", "no label"]),
        (1, [], ["task 2", "no label"]),
        (2, [_annotation("benign"), _annotation("benign")], ["task 3", "twice"]),
        (3, [_annotation("maybe")], ["task 4", "'maybe' is no label"]),
    ):
        ben.write_text(
            json.dumps([t | {"annotations": change} if i == task else t for i, t in enumerate(tasks)])
        )
        said = bench.refused(caplog, ana, ben)
        assert all(word in said for word in words), said


def test_a_third_reader_may_not_touch_what_was_agreed(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Two agreeing annotators would be overruled by a row that was pasted in."""
    files = (bench.csv("ana", _labels(bench)), bench.csv("ben", _labels(bench, _0=_other(bench, 0))))
    made = bench.run(returned=files)
    (row,) = _read_csv(made / "adjudication.csv")
    pasted = [row | {"label": "benign"}, row | {"label": "benign", "item": bench.items[5]}]
    said = bench.refused(caplog, *files, adjudicated=bench.write("third.csv", pasted))
    assert "row 3" in said
    assert "is not open" in said
    said = bench.refused(caplog, *files, adjudicated=bench.csv("ana", _labels(bench), "own.csv"))
    assert "'ana' is none of adjudicator" in said


def test_an_import_needs_the_batch_it_is_from(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Labels joined with another batch's key are labels of other samples."""
    ana, ben = bench.csv("ana", _labels(bench)), bench.csv("ben", _labels(bench))
    other = bench.run(action="export", seed=5)
    assert f"never exported in {other.name}" in bench.refused(caplog, ana, ben, at=other)
    made = bench.run(returned=(ana, ben))
    assert "not an exported batch" in bench.refused(caplog, ana, ben, at=made)
    key = bench.batch / "key.jsonl"
    key.write_text(key.read_text().replace("benign", "misbehavior"))
    assert "key.jsonl: not as it was written" in bench.refused(caplog, ana, ben)


def test_candidates_may_lack_a_label_and_come_as_parquet(bench: Bench) -> None:
    """Most of what one has annotated has no label yet; a prior of the wrong kind would be made up."""
    import pyarrow.parquet as pq

    rows = [sample.model_dump(mode="json") for sample in bench.samples.values()]
    for row in rows:
        for name in ("id", "label", "label_source", "construction"):
            del row[name]
    unlabelled = bench.folder / "unlabelled.jsonl"
    unlabelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    batch = bench.run(action="export", candidates=unlabelled)
    assert {json.loads(line)["prior"] for line in _lines(batch / "key.jsonl")} == {None}
    shown = "".join((batch / "batches/ana" / name).read_text() for name in ("batch.csv", "tasks.json"))
    assert shown == "".join(
        (bench.batch / "batches/ana" / name).read_text() for name in ("batch.csv", "tasks.json")
    ), "what annotators see depends on the label"
    parquet = bench.folder / "candidates.parquet"
    pq.write_table(to_table(list(bench.samples.values())), parquet)
    batch = bench.run(action="export", candidates=parquet)
    assert (batch / "key.jsonl").read_bytes() == (bench.batch / "key.jsonl").read_bytes()


def test_a_datasets_split_is_annotated_through_its_view(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dataset.test.subset` has to say what is sent out: annotation is paid by the item."""
    dataset = bench.folder / "data" / "starter-0"
    write_split(dataset, Split.TEST, bench.samples.values())
    seal(dataset)
    monkeypatch.setattr("monitorbench.annotation.stage.ensure", lambda study, splits: dataset)
    batch = bench.run(action="export", candidates=None)
    assert sorted(json.loads(line)["item"] for line in _lines(batch / "key.jsonl")) == bench.items
    bench.view("safety_permission")
    part = bench.run(action="export", candidates=None)
    assert part != batch
    assert {json.loads(line)["category"] for line in _lines(part / "key.jsonl")} == {"safety_permission"}
    assert read_manifest(part)["results"]["cells"] == {"safety_permission/qa": 12}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row | {"category": "Safety"}, ["line 2", "category"]),
        (lambda row: row | {"label": "bad"}, ["line 2", "label"]),
        (lambda row: row | {"surprise": 1}, ["line 2", "surprise"]),
        (lambda row: {k: v for k, v in row.items() if k != "licence"}, ["line 2", "licence"]),
        (lambda row: row | {"id": "0" * 16}, ["line 2", "hash"]),
        (lambda row: row | {"split": "train"}, ["line 2", "split train", "annotation.split=test"]),
        (
            lambda row: row | {"request": [{"role": "user", "content": "\ud800"}], "id": ""},
            ["line 2", "field 'request'", "surrogate pair"],
        ),
        (lambda _: "text", ["line 2", "no JSON object"]),
    ],
)
def test_a_bad_candidate_is_named(
    bench: Bench, change: Callable[[dict[str, Any]], object], words: list[str]
) -> None:
    """A row that is skipped is a sample nobody labels and nobody misses."""
    rows: list[Any] = [json.loads(line) for line in _lines(bench.candidates)]
    rows[1] = change(rows[1])
    bench.candidates.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError) as caught:
        bench.run(action="export")
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)


def test_a_candidate_twice_or_none_at_all(bench: Bench) -> None:
    """A sample that is in a batch twice counts double in κ."""
    lines = _lines(bench.candidates)
    for content, words in (
        ("\n".join([*lines, lines[0]]), "line 25: the same content"),
        ("", "no row"),
        ("{", "line 1"),
    ):
        bench.candidates.write_text(content)
        with pytest.raises(UserError, match=words):
            bench.run(action="export")


def test_names_are_safe_in_paths_and_cells(bench: Bench) -> None:
    """`../x` would write outside the batch, and two names that differ in capitals share a folder on a Mac."""
    for names in (("a",), ("a", "../b"), ("a", "=b"), ("Ana", "ana"), ("a", "adjudicator"), ("a", "")):
        with pytest.raises(ValidationError):
            bench.settings(annotators=names)


def _said(path: Path) -> str | None:
    """What reading a file is refused with, if it is."""
    try:
        read_returned(path)
    except UserError as error:
        return str(error)
    return None


def _other(bench: Bench, number: int) -> AnnotatorChoice:
    return (
        AnnotatorChoice.BENIGN
        if bench.prior[bench.items[number]] == "misbehavior"
        else AnnotatorChoice.MISBEHAVIOR
    )


def _lines(path: Path) -> list[str]:
    return path.read_text().rstrip("\n").split("\n")


def _item_of(made: Path) -> dict[str, str]:
    return {row["sample"]: row["item"] for row in map(json.loads, _lines(made / "labels.jsonl"))}


@pytest.mark.parametrize("names", ["item,batch,label,Label", "item,batch,label,note, Note "])
def test_a_returned_column_that_is_there_twice_is_refused(tmp_path: Path, names: str) -> None:
    """A label that somebody wrote beside another would be taken, or not, by its place."""
    (tmp_path / "x.csv").write_text(f"{names}\ni,b,benign,misbehavior\n")
    with pytest.raises(UserError, match=r"x\.csv, row 1: column '(label|note)' is there twice; restore"):
        read_returned(tmp_path / "x.csv")
