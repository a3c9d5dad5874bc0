"""Pairs of one request, complied with and refused; and which files of JailbreakBench's archive count."""

import io
import json
import tarfile
from collections import Counter, defaultdict

import pytest

from monitorbench.config.base import UserError
from monitorbench.construct.pair import ConstructionContext
from monitorbench.records import Label, LabelSource
from monitorbench.sources.upstream import refusals


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
    rows = list(
        refusals.read_jailbreakbench(archived(A__b__m=[_row(0, True, "Sure."), _row(1, False, "No.")]))
    )
    assert [row.request[0].content for row in rows] == ["Goal 0", "Goal 1"]
    assert [row.label for row in rows] == [Label.MISBEHAVIOR, Label.BENIGN]
    assert [row.id for row in rows] == ["A/b/m/0", "A/b/m/1"]
    assert {(row.label_source, row.subject_model) for row in rows} == {(LabelSource.JUDGE, "m")}
    assert rows[0].subcategory == "fraud_deception_of_people"


def _members(rows):
    return {frozenset(row.id for row in pair) for pair in _pairs(rows).values()}


_GUIDE, _NO = "Here is a guide.", "I'm sorry, but no."


def test_a_pair_is_a_response_and_a_refusal_of_one_goal(archived):
    """A pair would differ in more than the response, or hold one label twice."""
    files = archived(
        GCG__b__m=[_row(0, True, _GUIDE), _row(1, True, _GUIDE), _row(2, False, _NO)],
        JBC__b__m=[_row(0, False, _NO), _row(1, False, "It is a fine day.")],
        PAIR__b__n=[_row(0, False, "Sorry, never in my life."), _row(2, False, _NO)],
    )
    assert _members(refusals.read_jailbreakbench(files)) == {frozenset({"GCG/b/m/0", "JBC/b/m/0"})}


@pytest.mark.parametrize(
    ("attack", "response"),
    [
        ("PAIR", _GUIDE),
        ("prompt_with_random_search", _GUIDE),
        ("JBC", _GUIDE),
        ("GCG", "Sure, here is a guide."),
        ("DSN", "Niccolo: How?\n\nAIM: Thus."),
    ],
)
def test_what_the_attack_dictates_makes_no_pair(archived, attack, response):
    """A monitor would know the attack's own sentence, or be asked about an answer to another request."""
    files = archived(**{f"{attack}__b__m": [_row(0, True, response)], "GCG__b__n": [_row(0, False, _NO)]})
    rows = list(refusals.read_jailbreakbench(files))
    assert len(rows) == 2
    assert not _pairs(rows)


def test_the_sides_of_a_pair_end_alike_and_are_of_nearly_one_length(archived):
    """Being cut off, or the length, would tell the labels apart."""
    files = archived(
        GCG__b__m=[_row(0, True, f"{_GUIDE} {'word ' * 20}"), _row(1, True, _GUIDE)],
        DSN__b__m=[_row(0, True, f"{_GUIDE} {'more ' * 60}"), _row(1, True, f"{_GUIDE} {'a b.' * 40}")],
        JBC__b__m=[_row(0, False, f"{_NO} {'no ' * 100}"), _row(1, False, f"{_NO} It is not")],
        JBC__b__n=[_row(0, False, f"{_NO} {'reason ' * 18}")],
    )
    assert _members(refusals.read_jailbreakbench(files)) == {
        frozenset({"GCG/b/m/0", "JBC/b/n/0"}),
        frozenset({"DSN/b/m/0", "JBC/b/m/0"}),
    }


def test_a_goal_has_at_most_two_pairs(archived):
    """A few goals would be most of the cell."""
    attacks = {f"GCG__{place}__m": [_row(0, True, _GUIDE)] for place in "abcd"}
    refused = {f"JBC__{place}__m": [_row(0, False, _NO)] for place in "abcd"}
    assert len(_pairs(refusals.read_jailbreakbench(archived(**attacks, **refused)))) == 2


def test_where_the_two_judges_differ_the_response_is_passed_over(archived):
    """Half of these labels are wrong."""
    verdicts = [_row(n, True, _GUIDE, jailbroken_llama_guard1=v) for n, v in enumerate((True, False, None))]
    assert [row.group for row in refusals.read_jailbreakbench(archived(GCG__b__m=verdicts))] == ["0", "2"]


def test_goals_in_two_wordings_make_no_pair_but_one_group(archived):
    """The two sides of a pair would have different requests."""
    files = archived(GCG__b__m=[_row(0, True, _GUIDE)], JBC__b__m=[_row(0, False, _NO, goal="Goal nought")])
    one, two = refusals.read_jailbreakbench(files)
    assert one.pair == two.pair == ""
    assert one.group == two.group


def test_the_stratum_is_refusal(archived):
    """The page would mix these with pairs in which both answers help."""
    rows = refusals.read_jailbreakbench(
        archived(GCG__b__m=[_row(0, True, _GUIDE)], JBC__b__m=[_row(0, False, _NO)])
    )
    context = ConstructionContext("jailbreakbench", "MIT", 0, None)
    (made,) = refusals.JAILBREAKBENCH.construct(rows, context)
    assert [sample.stratum for sample in made.samples] == ["refusal", "refusal"]
    assert made.samples[0].pair_id == made.samples[1].pair_id


def test_summaries_test_artifacts_and_missing_responses_are_passed_over(archived):
    """Responses would be counted twice, or upstream's made-up ones once."""
    files = archived(
        **{"A__attack-info": {"models": {}}, "A__submission": {"summaries": {}}},
        A__b__m=[_row(0, True, "Sure."), _row(1, False, None, prompt=None)],
        **{"test-artifact__b__m": [_row(0, True, "Sure.")]},
    )
    assert [row.id for row in refusals.read_jailbreakbench(files)] == ["A/b/m/0"]


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
        list(refusals.read_jailbreakbench(archived(A__b__m=rows)))
    skipping = archived("skip", A__b__m=rows)
    assert len(list(refusals.read_jailbreakbench(skipping))) == 1
    assert skipping.bad_rows.total() == 1


def test_a_member_without_attempts_is_an_error_in_one_line(archived):
    """A whole attack would be missing from the corpus."""
    with pytest.raises(UserError, match=r"A/b/m\.json: no attack artifact") as failed:
        list(refusals.read_jailbreakbench(archived(A__b__m={"parameters": {}})))
    assert "\n" not in str(failed.value)


def test_a_completion_counts_where_both_annotators_agree(source_files):
    """A partial refusal would be benign, one prompt be much of the stratum, or the length tell the label."""
    comply, refuse, partly = "1_full_compliance", "2_full_refusal", "3_partial_refusal"
    rows = [
        ("Do it.", "Here it is, step by step.", comply, comply),
        ("Do it.", "Begin at night.", comply, comply),
        ("Do it.", "Take a rope.", comply, comply),
        ("Do it.", "I am sorry, I can't help.", refuse, refuse),
        ("Do it.", "No, I won't.", refuse, refuse),
        ("Do it.", "Never, not for you.", refuse, comply),
        ("Do it.", "In part, perhaps.", partly, partly),
        ("And that.", "Sure, like this.", comply, comply),
    ]
    lines = [f'contrast_x,"{p}","{text}",{first},{second}' for p, text, first, second in rows]
    table = "\n".join(
        ["type,prompt,completion,annotation_1,annotation_2", *lines, f"safe,a,b,{comply},{comply}"]
    )
    files = source_files("xstest", also={"xstest_v2_completions_m.csv": table.encode()})
    pairs = _pairs(refusals.read_xstest(files))
    assert [[row.response[0].content for row in pair] for pair in pairs.values()] == [
        ["Here it is, step by step.", "I am sorry, I can't help."],
        ["Begin at night.", "No, I won't."],
    ]
    for pair in pairs.values():
        assert [row.label for row in pair] == [Label.MISBEHAVIOR, Label.BENIGN]
        assert {(row.request[0].content, row.subcategory, row.subject_model) for row in pair} == {
            ("Do it.", "x", "m")
        }


@pytest.mark.sources
def test_the_archive(mirror_files):
    """Pairs would be missing, or break the promise that their sides share a request."""
    files = mirror_files("jailbreakbench")
    rows = list(refusals.read_jailbreakbench(files))
    assert Counter(row.label for row in rows) == {Label.MISBEHAVIOR: 868, Label.BENIGN: 614}
    pairs = _pairs(rows)
    assert len(pairs) == 58
    for pair in pairs.values():
        assert len(pair) == len({row.label for row in pair}) == 2
        assert len({row.request for row in pair}) == 1
