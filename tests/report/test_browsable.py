"""The data of the samples page: all of it there, as it was judged, within its size."""

import base64
import gzip
import json
from typing import Any

from fake_judged import fake_runs, fake_samples
from fake_results import BASE, fake_results
from fake_worst import LONG, highlight
from hostile import HOSTILE

from monitorbench.records import Label
from monitorbench.report.samples.browsable import link, packed, render_samples
from monitorbench.report.samples.marked import cut
from monitorbench.report.template import visible

RESULTS = fake_results()
LETTERS = {Label.MISBEHAVIOR: "m", Label.BENIGN: "b", None: "u"}


def unpacked(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_every_sample_and_verdict_is_in_the_index() -> None:
    """A sample that is left out, or has another's verdict, sends its reader after the wrong error."""
    runs = fake_runs()
    index = unpacked(packed(RESULTS, runs).of_all)
    samples = {sample.id: sample for sample in runs[0].samples}
    assert sorted(index["ids"]) == sorted(samples)
    for monitor, run in zip(index["monitors"], runs, strict=True):
        for i, sample_id in enumerate(index["ids"]):
            verdict = run.verdicts.get(sample_id)
            assert monitor["own"][i] == ("-" if verdict is None else LETTERS[verdict.label])
            assert index["labels"][i] == LETTERS[samples[sample_id].label]
            assert index["cell"]["names"][index["cell"]["of"][i]] == str(samples[sample_id].cell)


def test_a_calibrated_threshold_reads_the_scores() -> None:
    """At the operating point a score above the threshold flags, and a missing one is unscored, not benign."""
    runs = fake_runs()
    point = RESULTS["operating_points"][BASE]["direct"]
    limit = point["thresholds"][0]["threshold"]
    assert point["thresholds"][0]["category"] == ""
    index = unpacked(packed(RESULTS, runs).of_all)
    letters = []
    for sample_id in index["ids"]:
        score = runs[0].verdicts[sample_id].score
        letters.append("u" if score is None else "m" if score > limit else "b")
    assert set(letters) == set("umb")
    assert index["monitors"][0]["at_point"] == "".join(letters)
    assert index["monitors"][1]["at_point"] is None


def test_texts_are_whole_and_visible() -> None:
    """What a monitor judged has to be what a person reads, but for characters that hide."""
    runs = fake_runs()
    data = packed(RESULTS, runs)
    texts = [one for part in data.parts for one in unpacked(part)]
    samples = {sample.id: sample for sample in runs[0].samples}
    for sample_id, text in zip(unpacked(data.of_all)["ids"], texts, strict=True):
        content = visible(samples[sample_id].response[0].content[:4000])
        joined = ["".join(pieces) for tag, pieces in text["response"] if tag == "assistant"]
        assert joined[0] == content[: len(joined[0])]
        assert len(joined[0]) == len(content) or text["response_more"]


def test_quotes_are_ranges_of_pieces() -> None:
    """Two quotes that overlap, and a hidden character before them: a mark must not slip."""
    found = cut(
        fake_samples()[2].response,
        [
            [highlight(0, "content", 3, 30), highlight(0, "content", 20, 40)],
            [highlight(0, "content", 9000, 9001)],
        ],
        4000,
    )
    text = fake_samples()[2].response[0].content
    said = ["".join(found.blocks[of][1][start:end]) for of, start, end in found.marks[0].ranges]
    assert said == [visible(text[3:30]), visible(text[20:40])]
    assert found.marks[1] == ([], 1)


def test_long_texts_are_cut_until_the_page_fits() -> None:
    """A page that is too large to open shows nothing; what it leaves out, it says."""
    runs = fake_runs()
    whole, small = packed(RESULTS, runs), packed(RESULTS, runs, 4000)
    assert small.n_bytes < whole.n_bytes
    assert unpacked(small.of_all)["most_characters"] == 250
    first = unpacked(small.parts[0])[0]
    assert LONG[:100] in json.dumps(first["response"])
    assert first["response_more"] > 5000


def test_the_same_runs_give_the_same_bytes() -> None:
    """The manifest holds the page's checksum: a clock in the compressed data would change it."""
    assert render_samples(RESULTS, fake_runs()) == render_samples(RESULTS, fake_runs())


def test_hostile_text_is_nowhere_in_the_page_as_it_is() -> None:
    """Packed it can't end a script, whatever it holds; names in the page's frame are escaped."""
    results = fake_results()
    results["dataset"] |= {"name": HOSTILE}
    page = render_samples(results, fake_runs())
    assert "document.title = 'owned'" not in page
    assert page.count("<script") == 2 + len(packed(results, fake_runs()).parts)


def test_links_hold_any_name() -> None:
    """A monitor's name may have what ends a fragment's value."""
    assert link("a&b=c #d", "direct", cell="x/y") == (
        "samples.html#monitor=a%26b%3Dc%20%23d&prompt=direct&at=own&cell=x%2Fy"
    )
