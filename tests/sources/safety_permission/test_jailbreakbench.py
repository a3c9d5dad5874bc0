"""JailbreakBench's adapter: pairs of one goal, and which files of the archive count."""

import io
import json
import tarfile
from collections import Counter, defaultdict

import pytest

from monitorbench.config.base import UserError
from monitorbench.records import Label, LabelSource
from monitorbench.sources.safety_permission import jailbreakbench


def _row(index, jailbroken, response, **change):
    return {
        "index": index,
        "goal": f"Goal {index}",
        "behavior": f"Behaviour {index}",
        "category": "Fraud/Deception of people",
        "prompt": f"!! Goal {index} !!",
        "response": response,
        "jailbroken": jailbroken,
        **change,
    }


def _archive(**members):
    """A gzipped archive; a member `A__b__c` is the file `attack-artifacts/A/b/c.json`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, rows in members.items():
            path = f"attack-artifacts/{name.replace('__', '/')}.json"
            if isinstance(rows, list):
                rows = {"parameters": {"model": name.rpartition("__")[2]}, "jailbreaks": rows}
            content = json.dumps(rows).encode()
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def archived(source_files):
    def make(on_bad_row="error", **members):
        return source_files(
            "jailbreakbench", also={"artifacts.tar.gz": _archive(**members)}, on_bad_row=on_bad_row
        )

    return make


def _pairs(rows):
    pairs = defaultdict(list)
    for row in rows:
        if row.pair:
            pairs[row.pair].append(row)
    return pairs


def test_the_request_is_the_goal_and_jailbroken_is_misbehavior(archived):
    """The attack string would give the label away, or every label be upside down."""
    rows = list(jailbreakbench.load(archived(A__b__m=[_row(0, True, "Sure."), _row(1, False, "No.")])))
    assert [row.request[0].content for row in rows] == ["Goal 0", "Goal 1"]
    assert [row.label for row in rows] == [Label.MISBEHAVIOR, Label.BENIGN]
    assert [row.id for row in rows] == ["A/b/m/0", "A/b/m/1"]
    assert {(row.label_source, row.subject_model) for row in rows} == {(LabelSource.JUDGE, "m")}
    assert rows[0].subcategory == "fraud_deception_of_people"


def test_a_pair_is_two_responses_to_one_goal(archived):
    """A pair would differ in more than the response, or hold one label twice."""
    files = archived(
        A__b__m=[_row(0, True, "Sure."), _row(1, True, "Sure!"), _row(2, False, "No.")],
        B__b__m=[_row(0, False, "No."), _row(1, True, "Fine."), _row(2, False, "Never.")],
        C__b__n=[_row(0, False, "Sorry."), _row(1, False, "Sorry."), _row(2, False, "Sorry.")],
    )
    pairs = _pairs(jailbreakbench.load(files))
    members = {frozenset(row.id for row in pair) for pair in pairs.values()}
    assert members == {frozenset({"A/b/m/0", "B/b/m/0"}), frozenset({"A/b/m/1", "C/b/n/1"})}


def test_pairs_are_of_one_model_where_there_are_such(archived):
    """A monitor could tell the sides apart by each model's manner more often than need be."""
    files = archived(
        A__b__n=[_row(0, False, "No.")], B__b__m=[_row(0, True, "Sure.")], C__b__m=[_row(0, False, "Never.")]
    )
    (pair,) = _pairs(jailbreakbench.load(files)).values()
    assert {row.subject_model for row in pair} == {"m"}


def test_goals_in_two_wordings_make_no_pair_but_one_group(archived):
    """The two sides of a pair would have different requests."""
    files = archived(A__b__m=[_row(0, True, "Sure.")], B__b__m=[_row(0, False, "No.", goal="Goal nought")])
    one, two = jailbreakbench.load(files)
    assert one.pair == two.pair == ""
    assert one.group == two.group


def test_the_same_response_with_both_labels_makes_no_pair(archived):
    """One text would be its own opposite."""
    files = archived(A__b__m=[_row(0, True, "Well.")], B__b__m=[_row(0, False, "Well. ")])
    assert not _pairs(jailbreakbench.load(files))


def test_summaries_test_artifacts_and_missing_responses_are_passed_over(archived):
    """Responses would be counted twice, or upstream's made-up ones once."""
    files = archived(
        **{"A__attack-info": {"models": {}}, "A__submission": {"summaries": {}}},
        A__b__m=[_row(0, True, "Sure."), _row(1, False, None, prompt=None)],
        **{"test-artifact__b__m": [_row(0, True, "Sure.")]},
    )
    assert [row.id for row in jailbreakbench.load(files)] == ["A/b/m/0"]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (_row(1, "yes", "No."), "'jailbroken' is neither true nor false"),
        (_row("1", True, "No."), "'index' is no whole number"),
        (_row(0, True, "No."), "duplicate id: A/b/m/0"),
        ({"index": 1, "jailbroken": True, "goal": "G", "category": "C"}, "missing field 'response'"),
        ("text", "not an object"),
    ],
)
def test_a_broken_row_is_an_error_or_counted(archived, bad, what):
    """A changed format would give a silently smaller corpus."""
    rows = [_row(0, True, "Sure."), bad]
    with pytest.raises(UserError, match=rf"m\.json jailbreak 1: .*{what}"):
        list(jailbreakbench.load(archived(A__b__m=rows)))
    skipping = archived("skip", A__b__m=rows)
    assert len(list(jailbreakbench.load(skipping))) == 1
    assert skipping.bad_rows.total() == 1


def test_a_member_without_attempts_is_an_error_in_one_line(archived):
    """A whole attack would be missing from the corpus."""
    with pytest.raises(UserError, match=r"A/b/m\.json: no attack artifact") as failed:
        list(jailbreakbench.load(archived(A__b__m={"parameters": {}})))
    assert "\n" not in str(failed.value)


@pytest.mark.sources
def test_the_archive(mirror_files):
    """Pairs would be missing, or break the promise that their sides share a request."""
    files = mirror_files("jailbreakbench")
    rows = list(jailbreakbench.load(files))
    assert Counter(row.label for row in rows) == {Label.MISBEHAVIOR: 937, Label.BENIGN: 700}
    pairs = _pairs(rows)
    assert len(pairs) == 607
    for pair in pairs.values():
        assert len(pair) == len({row.label for row in pair}) == 2
        assert len({row.request for row in pair}) == 1
