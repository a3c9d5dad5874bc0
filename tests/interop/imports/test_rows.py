"""How rows of a file are read: values, lists, steps and draws; and what is refused, with line and field."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from score_files import Import, origins, runs_of, write_csv

from monitorbench.config.base import UserError
from monitorbench.config.imports import Import as Settings
from monitorbench.config.imports import ImportColumns
from monitorbench.corpus.store import read_split
from monitorbench.interop.imports import values
from monitorbench.interop.imports.readers.open import read_files
from monitorbench.interop.imports.scores import combined
from monitorbench.records import Split
from monitorbench.runs.directory import read_manifest
from monitorbench.scoring.evaluations import read_evaluation
from monitorbench.untrusted_rows import rows

BAD = [
    ("id,label,score\na,1,0.5\n\nb,0,oops\n", "line 4: score='oops' is no number"),
    ("id,label,score\na,1,0.5\nb,0,7\n", "line 3: score='7' is outside the scale"),
    ("id,label,score\na,1,0.5\nb,0,inf\n", "line 3: score='inf' is no number"),
    ("id,label,score\na,1,0.5\nb,0\n", "line 3: 2 values under 3 names"),
    ('id,label,score\n"a\nb",1,0.5\nc,maybe,0.5\n', "line 4: label='maybe' is no label"),
    ("id,label,score\na,1,0.5\nb,,0.5\n", "line 3: label='': the sample has no label"),
    ("id,label,score\na,1,0.5\na,1,0.6\n", "line 3: a second score of sample 'a'"),
    ("id,label,score\na,1,0.5\n,1,0.6\n", "line 3: id='': no sample"),
    ("id,label,score,draw\na,1,0.5,1\na,0,0.6,2\n", "line 3: label='0': another row of sample 'a' says '1'"),
    ("id,id,score\na,1,0.5\n", "line 1: column 'id' is there twice"),
    (
        "id,label\na,1\n",
        "no column has a usual name for scores; expected import.columns.score=COLUMN; there are id, label",
    ),
    ("", "nothing in it"),
    ("id,label,score\n", "no row in it"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=[said[:40] for _, said in BAD])
def test_a_bad_row_is_named_and_nothing_is_written(tmp_path: Path, importing: Import, text: str, said: str):
    """A person would look for one bad line among a million, or find half an import."""
    file = tmp_path / "s.csv"
    file.write_text(text)
    with pytest.raises(UserError) as raised:
        importing(file)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert [one.name for one in tmp_path.iterdir()] == ["s.csv"]


def test_bytes_that_are_no_text_are_refused(tmp_path: Path, importing: Import):
    """A file in another encoding would be imported with ids nobody finds again."""
    (tmp_path / "s.csv").write_bytes(b"id,label,score\na,1,0.5\n\xff\xfe,1,0.5\n")
    with pytest.raises(
        UserError, match="line 3, column 1: the byte 0xFF is no UTF-8; save the file as UTF-8"
    ):
        importing(tmp_path / "s.csv")
    (tmp_path / "s.csv").write_bytes("id,label,score\na,1,.5\nb é,0,.5\n".encode("latin-1"))
    with pytest.raises(UserError, match="line 3, column 3: the byte 0xE9 is no UTF-8"):
        importing(tmp_path / "s.csv")
    with pytest.raises(UserError, match="line 3, column 3: the byte 0xE9 is no UTF-8"):
        list(rows(tmp_path / "s.csv"))
    (tmp_path / "s.csv").write_bytes(gzip.compress(b"id,label,score\na,1,0.5\n"))
    with pytest.raises(UserError, match=r"packed \(zip, gzip, .*\), no text; unpack or rename it"):
        importing(tmp_path / "s.csv")
    (tmp_path / "s.jsonl").write_text('{"id": 1, "label": 1, "score": 0.5}\n{"id": 2, "id": 2}\n')
    with pytest.raises(UserError, match="line 2"):
        importing(tmp_path / "s.jsonl")


NUMBER = st.none() | st.floats(0, 10).map(lambda x: round(x, 6))


@given(st.lists(st.tuples(st.text('abé" ,\n', min_size=1), NUMBER), min_size=1), st.booleans())
def test_all_formats_give_the_same_scores(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, float | None]], is_turned: bool
):
    """One log in two formats would be two monitors."""
    folder = tmp_path_factory.mktemp("formats")
    table = [{"note": note, "score": score} for note, score in rows]
    write_csv(folder / "s.csv", table)
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    pq.write_table(
        pa.Table.from_pylist(table, pa.schema({"note": pa.string(), "score": pa.float64()})),
        folder / "s.parquet",
    )
    scale = (10.0, 0.0) if is_turned else (0.0, 10.0)
    want = np.array([np.nan if score is None else score / 10 for _, score in rows])
    for name in ("s.csv", "s.jsonl", "s.parquet"):
        read = read_files([folder / name], Settings(columns=ImportColumns(response="note")))
        found = values.scores(read, "score", scale=scale, levels=None)
        np.testing.assert_allclose(found, 1 - want if is_turned else want, atol=1e-12)
        assert values.texts(read, "note", keeps_words=True).to_pylist() == [note for note, _ in rows]


@given(
    st.lists(
        arrays(np.float64, st.integers(1, 6), elements=st.sampled_from([0.1, 0.4, 0.9, np.nan])), min_size=1
    ),
    st.integers(1, 4),
    st.booleans(),
)
def test_many_are_made_one_as_one_by_one(groups: list[np.ndarray], top_k: int, is_strict: bool):
    """A trajectory would have another's steps, or the score of a step that is not there."""
    whole = np.concatenate(groups)
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    ways = {
        "max": lambda there: max(there),
        "mean": lambda there: sum(there) / len(there),
        "last": lambda there: there[-1],
        "mean_top_k": lambda there: float(np.mean(sorted(there)[-top_k:])),
    }
    for how, one in ways.items():
        want = []
        for group in groups:
            there = group[~np.isnan(group)].tolist()
            is_none = not there or (is_strict and len(there) < len(group))
            want.append(np.nan if is_none else one(there))
        np.testing.assert_allclose(combined(whole, starts, how, top_k, is_strict=is_strict), want)


def arena(file: Path) -> Path:
    """Trajectories as agents' benchmarks log them: a list of actions, each with its members' scores."""
    rows = [
        {
            "id": f"tr{i}",
            "task_id": f"k{i // 2}",
            "label": "attack" if i % 2 else "honest",
            "when": "2024-01-01T00:00:00",
            "actions": [
                {
                    "command": f"step {j} of {i}",
                    "bad": bool(i % 2 and j == 1),
                    "scores": {"gpt": (i + 3 * j) % 11},
                }
                | {"draws": [j, 2 * j, None]}
                for j in range(2 + i % 3)
            ],
        }
        for i in range(12)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_actions_become_a_trajectory_and_its_steps(tmp_path: Path, importing: Import):
    """Control metrics would see other steps than were logged."""
    settings = ("import.actions=[actions]", "import.columns.score=actions.scores.*", "import.scale=[0,10]")
    run = importing(
        arena(tmp_path / "a.jsonl"),
        *settings,
        "import.columns.step_label=actions.bad",
        "import.columns.response=actions.command",
    )
    found = read_evaluation(tmp_path / "data", run)
    assert found.monitor == "gpt"
    samples = {one.id: one for one in read_split(found.data, Split.TEST)}
    own_ids = {one["id"]: one["own_id"] for one in origins(found.data)}
    steps = pq.read_table(run / "steps.parquet")
    assert steps.schema.types == [pa.string(), pa.int32(), pa.int32(), pa.float64(), pa.bool_()]
    assert "steps.parquet" in read_manifest(run)["files"]
    for sample, score in zip(found.judged.sample_ids.to_pylist(), found.judged.scores.tolist(), strict=True):
        i = int(own_ids[sample].removeprefix("tr"))
        want = [(i + 3 * j) % 11 / 10 for j in range(2 + i % 3)]
        assert score == pytest.approx(max(want))
        assert samples[sample].group_id == f"k{i // 2}"
        assert [one.content for one in samples[sample].response] == [
            f"step {j} of {i}" for j in range(len(want))
        ]
        mine = [row for row in steps.to_pylist() if row["sample_id"] == sample]
        assert [row["score"] for row in mine] == pytest.approx(want)
        assert [row["step"] for row in mine] == list(range(len(want)))
        assert [row["label"] for row in mine] == [bool(i % 2 and j == 1) for j in range(len(want))]


@pytest.mark.parametrize(
    ("overrides", "n", "score_of_last"),
    [
        (("import.draws=mean", "import.trajectory=last"), 12, 1.5 * 3 / 10),
        (("import.draws=max", "import.trajectory=mean_top_k", "import.top_k=2"), 12, (6 + 4) / 2 / 10),
        (("import.draws=all", "import.trajectory=max"), 36, None),
        (("import.draws=max", "import.unit=step"), 36, 6 / 10),
    ],
)
def test_draws_and_units(
    tmp_path: Path, importing: Import, overrides: tuple[str, ...], n: int, score_of_last: float | None
):
    """The mean of draws would be taken where the highest was asked for, or trajectories for steps."""
    run = importing(
        arena(tmp_path / "a.jsonl"),
        "import.actions=[actions]",
        "import.columns.score=actions.draws",
        "import.scale=[0,10]",
        *overrides,
    )
    found = read_evaluation(tmp_path / "data", run)
    assert len(found.judged) == n
    assert (run / "steps.parquet").is_file() == ("import.unit=step" not in overrides)
    assert (
        np.isnan(found.judged.scores[-1])
        if score_of_last is None
        else (found.judged.scores[-1] == pytest.approx(score_of_last))
    )


def test_steps_and_chats_and_levels_in_plain_rows(tmp_path: Path, importing: Import):
    """Levels in words and chats as JSON are what many logs have."""
    chat = json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}])
    rows = [
        {
            "id": f"s{i}",
            "step": 5 * j,
            "label": i % 2,
            "risk": level,
            "request": chat,
            "response": f"[{{ {i} {j}",
        }
        for i in range(4)
        for j, level in enumerate(["Low", "high", ""])
    ]
    run = importing(
        write_csv(tmp_path / "s.csv", rows),
        "import.columns.score=risk",
        "import.levels={low:0.1,high:0.9}",
        "import.trajectory=last",
        "import.missing=pass",
    )
    found = read_evaluation(tmp_path / "data", run)
    assert found.judged.scores.tolist() == [0.9] * 4
    samples = read_split(found.data, Split.TEST)
    assert [len(one.request) for one in samples] == [2] * 4
    assert {one.group_id for one in samples} == {samples[0].group_id}  # one request, one group
    assert list(runs_of(tmp_path)) == ["risk/test"]
