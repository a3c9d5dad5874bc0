"""What a lab would lose here: to know before an hour's work, and without a network, what can't be filled."""

import re
from collections import Counter
from pathlib import Path

from command import ROOT, script
from small_mirror import CODE, CORPUS, GAMING, QA, Mirrored, built, overrides
from studies import study

from monitorbench.corpus.paper.counts import STATED, STATED_QUESTIONS, CellCounts, count, counts
from monitorbench.corpus.paper.plan import plan
from monitorbench.corpus.paper.units import paper_inputs
from monitorbench.corpus.store import read_split
from monitorbench.records import Split
from monitorbench.runs.directory import read_manifest
from monitorbench.sources.all import SOURCES


def test_the_plan_of_a_cell_is_what_its_quotas_take_of_what_was_counted():
    """Else a plan promises pairs with a trace for those without, or one source beyond its share."""
    known = CellCounts(
        pairs={QA: {"without_thinking": 240, "with_thinking": 25, "development": 60}},
        samples={
            QA: {"diasafety": 90_000, "jailbreakbench": 500, "openai_rbr": 400, "synthetic": 10**6},
            CODE: {"juliet": 10, "sven": 10},
        },
        questions={"sycophancy_bias/qa": {"bbq": 7, "mmlu": 5}},
    )
    planned = {
        one.cell: one for one in plan(paper_inputs(study("dataset=paper_local", primary="build")), known)
    }
    qa = planned[QA]
    assert (qa.pairs, qa.pairs_asked) == (240 + 25, 293), "pairs of development are none of the test's"
    assert (qa.development, qa.development_asked) == (60, 60)
    # At most three tenths are DiaSafety's: 900 others carry 385 of its samples. What is left out counts not.
    assert (qa.samples, qa.samples_asked) == (1285, 40_000)
    assert (planned[CODE].samples, planned[CODE].stated) == (20, 0), "paper_local leaves out betley_insecure"
    assert planned["sycophancy_bias/qa"].questions == 7
    assert planned[GAMING].pairs == planned[GAMING].samples == 0


def test_the_command_ends_in_one_screen_without_files_or_network(tmp_path: Path):
    """Else one has to build, or to fetch, to learn that it can't be built."""
    asked = ("dataset=paper", "plan=true", f"paths.data={tmp_path / 'data'}", "paths.sources=null")
    done = script("data_build/build.py", *asked, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for cell in study("dataset=paper", primary="build").dataset.benchmark_quotas:
        assert any(line.startswith(f"{cell} ") for line in lines), cell
    assert "a build stops; dataset.allow_short=true" in " ".join(lines)
    assert "Raw files here: 0 of " in done.stdout
    (tmp_path / "begun").mkdir()
    begun = script("data_build/build.py", *asked, f"dataset.elicited=[{tmp_path / 'begun'}]", folder=tmp_path)
    assert (begun.returncode, begun.stdout) == (1, "")
    assert f"{tmp_path / 'begun'}: " in begun.stderr
    assert "gpqa (hub, gated)" in done.stdout
    assert lines[-1].endswith("gpqa (hub, gated).")
    assert not (tmp_path / "data").exists()


def test_the_plan_is_what_the_documented_build_gave():
    """Else `plan=true` promises pairs and samples that the build of the same command never has."""
    table = re.findall(
        r"^\| (\w+/\w+)[^|]*\| (\d+)[^|]*\| ([\d,]+)[^|]*\|", (ROOT / "docs/data.md").read_text(), re.M
    )
    built_cells = {cell: (int(pairs), int(samples.replace(",", ""))) for cell, pairs, samples in table}
    planned = plan(paper_inputs(study("dataset=paper_local", primary="build")), counts())
    assert {row.cell: (row.pairs, row.samples) for row in planned}.items() <= built_cells.items()


def test_what_is_counted_is_what_a_build_without_quotas_has(
    small: Mirrored, same_candidates: Path, threads: None
):
    """Else the plan is of another pipeline than the build's, and promises what it never gives."""
    mirror, data, every = small.mirror, same_candidates, {QA: (99, 99), CODE: (99, 99), GAMING: (99, 99)}
    found = count(paper_inputs(study(*overrides(mirror, data), primary="build")))
    whole = built(mirror, data, benchmark=every, dataset__development_pairs="0")
    pairs = Counter((str(one.cell), one.pair_id, one.has_thinking) for one in read_split(whole, Split.TEST))
    for cell in every:
        by_trace = Counter(thinks for name, _, thinks in pairs if name == cell)
        available = dict(found.pairs[cell])
        available.pop("development", None)
        assert available == {
            trace: by_trace[thinks]
            for trace, thinks in (("with_thinking", True), ("without_thinking", False))
            if by_trace[thinks]
        }
    many = built(mirror, data, corpus=dict.fromkeys(CORPUS, 10_000))
    cells = read_manifest(many)["results"]["splits"]["train"]["cells"]
    assert found.samples[CODE] == cells[CODE]["by_source"]
    # jailbreakbench and diasafety keep to their shares in a build; counted is what there is of each.
    assert sum(found.samples[QA].values()) >= sum(cells[QA]["by_source"].values())
    assert found.questions["sycophancy_bias/reasoning"] == {"aime": 30, "gpqa": 198, "gsm8k": 0}
    assert found.questions["sycophancy_bias/qa"] == {n: STATED_QUESTIONS[n] for n in ("dfir_metric", "mmlu")}


def test_the_counts_that_come_with_the_package_are_of_sources_and_cells_there_are():
    """Else a source that was renamed counts for nothing in every plan, and nobody sees."""
    known = counts()
    cells = set(study("dataset=paper_local", primary="build").dataset.benchmark_quotas)
    assert set(known.pairs) == set(known.samples) == cells
    assert {name for of in known.samples.values() for name in of} <= set(SOURCES)
    assert {name for of in known.questions.values() for name in of} <= set(SOURCES)
    assert {*STATED, *STATED_QUESTIONS} <= set(SOURCES)
    assert all(name not in of for name in STATED for of in known.samples.values()), "counted and stated"
