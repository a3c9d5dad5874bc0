"""A verdict log read as columns says what the strict reader says, of whole, torn and foreign logs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_verdicts import made_verdict
from sealed import sealed

from monitorbench.config.base import UserError
from monitorbench.records import (
    GroundedQuote,
    Grounding,
    Label,
    QuoteField,
    Span,
    UnscoredReason,
    Verdict,
)
from monitorbench.runs.files import sealed_line
from monitorbench.runs.keyed_log import open_verdict_log, read_verdicts
from monitorbench.scoring.verdict_columns import read_verdict_columns

PLACE = Span(message=0, field=QuoteField.CONTENT, start=0, end=3)
FOUND = GroundedQuote(quote="a", how=Grounding.EXACT, ratio=1, place=PLACE)
LOST = GroundedQuote(quote="b", how=Grounding.NONE, ratio=0, place=None)


def verdict(i: int, **changes: Any) -> Verdict:
    label = (Label.MISBEHAVIOR, Label.BENIGN, None)[i % 3]
    values = {
        "key": f"k{i}",
        "sample_id": f"s{i}",
        "answer": 'yes "\n\u2028 ' + "x" * i,
        "unscored": None if label else UnscoredReason.TRUNCATED,
        "score_censored": i % 7 == 0,
        "evidence": ((), (FOUND,), (LOST, FOUND, FOUND), (LOST,))[i % 4],
    }
    return made_verdict(label, None if i % 5 == 0 else i / 100, **values | changes)


def lines(n: int) -> list[bytes]:
    return [sealed_line(verdict(i).model_dump_json()) + b"\n" for i in range(n)]


def check(path: Path) -> None:
    """Fail where the two readers differ."""
    records = read_verdicts(path)
    found = read_verdict_columns(path)
    flagged = {Label.MISBEHAVIOR: 1.0, Label.BENIGN: 0.0, None: np.nan}
    assert found.sample_ids.to_pylist() == [one.sample_id for one in records]
    assert found.censored.tolist() == [one.score_censored for one in records]
    assert found.flagged == pytest.approx([flagged[one.label] for one in records], nan_ok=True)
    scores = [np.nan if one.score is None else one.score for one in records]
    assert np.array_equal(found.scores, np.array(scores, dtype=float), equal_nan=True)
    assert found.n_quotes.tolist() == [len(one.evidence) for one in records]
    grounded = [sum(quote.place is not None for quote in one.evidence) for one in records]
    assert found.n_grounded.tolist() == grounded


def test_it_reads_what_was_written(tmp_path: Path):
    """A label or score beside another sample's id makes every rate wrong, unseen."""
    path = tmp_path / "verdicts.jsonl"
    for n in (0, 1, 60):
        path.write_bytes(b"".join(lines(n)))
        check(path)


def test_a_torn_last_line_is_left_out(tmp_path: Path):
    """A run that was killed while it wrote must still be scored as far as it came."""
    path = tmp_path / "verdicts.jsonl"
    whole = b"".join(lines(4))
    for cut in range(len(whole) - len(lines(4)[-1]) - 1, len(whole)):
        path.write_bytes(whole[:cut])
        check(path)


def test_fields_with_a_default_may_be_missing(tmp_path: Path):
    """Another writer's line has not all fields; and a line may be longer than the fast reader takes."""
    path = tmp_path / "verdicts.jsonl"
    rows = [json.loads(line) for line in lines(3)]
    for row in rows:
        del row["evidence"]
    path.write_bytes(b"".join(map(sealed, rows)))
    check(path)
    path.write_bytes(sealed(verdict(1, answer="y" * 5_000_000).model_dump(mode="json")))
    check(path)


def changed(**changes: object) -> bytes:
    return sealed(json.loads(lines(2)[1]) | changes)[:-1]


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"",
        b"[1]",
        b'{"key": "x"}',
        b'{"sample_id": "a", "label": "benign"}',
        changed(key=None),
        changed(answer=None),
        b"\xff\xfe",
        b"Traceback (most recent call last):",
        b"\x00" * 8,
        b"\r 50%",
        b"10%\r 20%\r",
        b"\x0c",
        b"{}\r{}",
        b"\xe2\x80\xa8",
        lines(1)[0][:-1] + lines(2)[1][:-1],
        lines(1)[0][:40] + b"\n" + lines(1)[0][40:-1],
        changed(sample_id=None),
        changed(label="maybe"),
        changed(label=None),
        changed(unscored="no_label"),
        changed(label=None, unscored="tired"),
        changed(score=1.5),
        changed(score=-0.1),
        changed(score=float("nan")),
        changed(score="high"),
        changed(evidence="none"),
    ],
)
def test_a_foreign_line_is_named_by_every_reader(tmp_path: Path, line: bytes):
    """Numbers out of a log that something else wrote into look like any others; a person needs file and line.

    A progress bar's carriage return would pass for the torn end, and all that follows be cut off.
    """
    path = tmp_path / "verdicts.jsonl"
    first, second = lines(2)
    check_refused(path, first + line + b"\n" + second, ":2: no Verdict")
    check_refused(path, first + line + b"\n", ":2: no Verdict")
    if line:
        check_refused(path, first + line + second, ":2")


def test_a_repeated_key_is_named_by_every_reader(tmp_path: Path):
    """Of two verdicts under one key, as of logs laid end to end, one would win in silence."""
    first, second = lines(2)
    again = changed(key="k0", label="misbehavior") + b"\n"
    check_refused(tmp_path / "verdicts.jsonl", first + second + again, ":3: repeats the key of line 1")


def check_refused(path: Path, content: bytes, said: str) -> None:
    """Fail where a reader takes the log, names it otherwise than the others, or changes it."""
    path.write_bytes(content)
    messages = set()
    for read in (read_verdicts, read_verdict_columns, lambda log: open_verdict_log(log).__enter__()):
        with pytest.raises(UserError, match=f"{path}{said}") as caught:
            read(path)
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert "\n" not in messages.pop()
    assert path.read_bytes() == content, "a log that is refused must not be changed"
