"""The report of a pilot: every run that changed its outcome, the decision's numbers, hostile text as text."""

import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_pilot import FAST, episode, episodes, write_pilot
from hostile import HOSTILE
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.lines import Line2D
from sealed import seal, seal_log

from monitorbench.config.base import UserError
from monitorbench.config.terminal import WIDTH
from monitorbench.intervention.outcomes import BASELINE, Outcome
from monitorbench.intervention.statistics.analysis import analyse
from monitorbench.intervention.statistics.decision_file import read_decision
from monitorbench.intervention.statistics.effect import matched
from monitorbench.intervention.transcripts import EPISODES, Episode
from monitorbench.report.pilot import figures
from monitorbench.report.pilot.flips import ComparedCondition, PilotRun, Transcripts, flips, read_pilot
from monitorbench.report.pilot.page import (
    condition_names,
    is_of_a_pilot,
    render_pilot,
    report_pilot,
    steps_intervened_at,
)
from monitorbench.runs.directory import record_files
from monitorbench.runs.keyed_log import read_log

RESULT = analyse([one.outcome for one in episodes({"rollback": "ABCD"})], FAST).conditions[0]
CELLS = {"rollback": "ABCDBCD", "append": "CBADDAD", "oracle": "CDCDDCD"}


class Seen(HTMLParser):
    """Tags, the text outside of tags, and what each `<details>` and each cell of a table says."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.summaries: list[str] = []
        self._in = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self.text += " "
        if tag == "summary":
            self._in = tag
            self.summaries.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._in:
            self._in = ""

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in:
            self.summaries[-1] += data


def flat(text: str) -> str:
    """Text with its white space as one blank each."""
    return " ".join(text.split())


def read(directory: Path) -> PilotRun:
    """The run, as the stage reads it."""
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    return read_pilot(directory, manifest, directory.parent.parent)


def page_of(directory: Path) -> str:
    """The page of a run."""
    return render_pilot(read(directory), json.loads((directory / "manifest.json").read_text()))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A live pilot of two conditions and a control."""
    return write_pilot(tmp_path_factory.mktemp("runs"), episodes(CELLS))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of a page's time; where they are not looked at they are left empty."""
    monkeypatch.setattr(figures, "draw", lambda *_: "<svg></svg>")


@pytest.fixture(scope="module")
def page(live: Path) -> str:
    """Its page."""
    return page_of(live)


def test_every_run_that_changed_is_shown_and_no_other(page: str) -> None:
    """Who decides by reading the disruptions must not miss one, nor read a run that did not change."""
    changed = {
        (condition, f"task-{i:03}")
        for condition, letters in CELLS.items()
        for i, letter in enumerate(letters)
        if letter in "BC"
    }
    titles = Counter(re.findall(r"task-\d+(?=, seed 0)", " ".join(Seen(page).summaries)))
    assert titles == Counter(task for _, task in changed)
    for condition, letters in CELLS.items():
        for i, _ in enumerate(letters):
            task = f"task-{i:03}"
            shown = f"go north, {condition} {task} action 3" in page
            assert shown is ((condition, task) in changed)
    assert "rollback: 2 disrupted, 2 recovered" in flat(Seen(page).text)
    assert "oracle (control): 0 disrupted, 3 recovered" in flat(Seen(page).text)


def test_a_transcript_has_each_step_and_marks_the_interventions(page: str) -> None:
    """A run whose intervention can't be found in its transcript explains nothing."""
    text = flat(Seen(page).text)
    # task-001 is a disruption under both; fired at step 2.
    assert "step 2: P(fail) 0.750; calibrated 0.625" in text
    assert "Intervention (rollback): this action was undone" in text
    assert "Intervention (append): the action stood" in text
    for part in ("thought 2", "observation 2", "goal", "opening"):
        assert f"go north, {part}" in text
    n_changed = sum(letter in "BC" for letters in CELLS.values() for letter in letters)
    assert sum(attributes.get("class") == "intervened" for _, attributes in Seen(page).tags) == n_changed
    assert not [1 for tag, attributes in Seen(page).tags if tag == "details" and "open" in attributes]


def test_the_numbers_are_those_of_the_decision(page: str, live: Path) -> None:
    """Two numbers for one thing, and neither is believed."""
    decision = read_decision(live)
    text = flat(Seen(page).text)
    assert decision.sentence in text
    for one in decision.conditions:
        cells = one.counts
        n = one.n_runs
        for letter, count in cells.model_dump().items():
            assert f"{letter} {count} ({count / n:.0%})" in text
        failed = cells.A + cells.C
        assert (
            f"Of {failed} that failed without it, {cells.C} recovered (r = {cells.C / failed:.0%})." in text
        )
    assert "7 tasks: each was run without intervention and with " in text
    assert "In all, 2 conditions and 1 control were tried." in text
    assert "Controls are shown for comparison" in text
    said = [note for one in decision.conditions for note in one.notes]
    assert said
    assert all(note in text for note in said)


@given(
    letters=st.lists(st.sampled_from(["A", "B", "C", "D", "AB", "CC", "BD", "DA"]), min_size=1, max_size=12),
    broken=st.booleans(),
)
def test_the_flips_are_the_pairs_that_differ(letters: list[str], broken: bool) -> None:
    """Whatever the pairs: a disruption is a success that became a failure, and nothing else is one."""
    outcomes = []
    for i, of_task in enumerate(letters):
        for seed, letter in enumerate(of_task):
            ended = (letter in "BD", letter in "CD")
            for condition, success in zip((BASELINE, "rollback"), ended, strict=True):
                reason = "agent: it broke" if broken and not success else ""
                outcomes.append(Outcome(f"t{i}", seed, "agent", condition, success, 0, 3, 20, reason))
    (pairs,) = matched(outcomes)
    found = flips(ComparedCondition(RESULT, pairs), Transcripts({}, "none"))
    expected: dict[str, list[tuple[str, int]]] = {"B": [], "C": []}
    for i, of_task in enumerate(letters):
        for seed, letter in enumerate(of_task):
            if letter in expected:
                expected[letter].append((f"t{i}", seed))
    assert [(one.task, one.seed) for one in found.disruptions] == expected["B"]
    assert [(one.task, one.seed) for one in found.recoveries] == expected["C"]
    for one in found.disruptions:
        assert one.baseline.startswith("succeeded")
        assert one.treated == (
            "broke down (3 steps, 20 tokens): agent: it broke" if broken else "failed (3 steps, 20 tokens)"
        )


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """What an agent or a world says must be read, never run, and nothing of it may hide."""
    names = {"agent": HOSTILE, "reason": f"environment: {HOSTILE}"}
    found = []
    for one in episodes({"rollback": "BC"}, said=HOSTILE):
        condition = one.condition if one.condition == BASELINE else HOSTILE
        changed = {**names, "task": f"{HOSTILE}{one.task}", "condition": condition}
        found.append(one.model_copy(update=changed | ({"reason": ""} if one.success else {})))
    html = page_of(write_pilot(tmp_path, found))
    seen = Seen(html)
    tags = Counter(tag for tag, _ in seen.tags)
    assert not set(tags) & {"script", "link", "img", "iframe", "object", "embed", "image", "form", "base"}
    for _, attributes in seen.tags:
        for name, value in attributes.items():
            assert re.fullmatch(r"[a-z0-9:.-]+", name)
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href"):
                assert (value or "").startswith("#")
    assert not re.search("[\x1b\u200f\u202a-\u202e]", html)
    shown = HOSTILE.replace("\x1b", "⟨U+001B⟩").replace("\u202e", "⟨U+202E⟩")
    shown = shown.replace("\u202c", "⟨U+202C⟩").replace("\u200f", "⟨U+200F⟩")
    # goal, opening, and three texts of each of four steps, in two runs of two pairs
    assert seen.text.count(shown) >= 2 * 2 * (2 + 3 * 4)
    assert f"environment: {shown}" in seen.text
    assert len(re.findall("</details>", html)) == tags["details"]
    assert len(re.findall("</pre>", html)) == tags["pre"]
    assert not re.search(r"url\((?!#)|@import", html)


def test_the_policy_lets_nothing_run_or_load(page: str) -> None:
    """The second lock: one forgotten escape must not hand the reader's browser to an agent's words."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    metas = [attributes for tag, attributes in Seen(page).tags if tag == "meta"]
    assert {"http-equiv": "Content-Security-Policy", "content": policy} in metas


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("BDDB", "p* is undefined: the baseline never failed, so there is no recovery rate."),
        ("ACCA", "p* is undefined: the baseline never succeeded, so there is no disruption rate."),
        ("ADDA", "p* is undefined: no run changed its outcome."),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_what_is_undefined_is_said_and_not_drawn(tmp_path: Path, letters: str, words: str) -> None:
    """A rate of 0 of 0 drawn at 0 would say that the intervention disrupts nothing."""
    run = read(write_pilot(tmp_path, episodes({"rollback": letters})))
    html = render_pilot(run, {})
    assert words in flat(Seen(html).text)
    assert "NaN" not in html
    assert not re.search(r"\bnan\b", html)
    (axes,) = figures.rates_figure(run.decision, condition_names(run.decision)).axes
    assert len(axes.lines) == 2  # the dot and the interval of p


def across(line: Line2D) -> list[float]:
    """Where a line's points lie on the horizontal axis."""
    return [float(x) for x in np.asarray(line.get_xdata())]


def test_the_figures_draw_the_decisions_numbers(live: Path) -> None:
    """A dot on the wrong row, or an interval of another condition, decides for the wrong mechanism."""
    decision = read_decision(live)
    names = condition_names(decision)
    rows = sorted(decision.conditions, key=lambda one: one.control)
    (axes,) = figures.rates_figure(decision, names).axes
    labels = [label.get_text() for label in axes.texts]
    assert labels == [one.condition for one in rows[:2]] + ["oracle (control)"]
    drawn = [across(line) for line in axes.lines[1:]]
    expected: list[Any] = []
    for one in rows:
        expected += [list(one.p_ci or ()), [one.p], list(one.p_star_ci or ()), [one.p_star]]
    assert drawn == expected  # after the line that sets the controls apart
    (axes,) = figures.effects_figure(decision, names).axes
    points = [across(line)[0] for line in axes.lines if len(across(line)) == 1]
    assert points == [100 * (one.delta_success or 0) for one in rows]


def test_the_histogram_counts_each_intervention_once(live: Path) -> None:
    """When a critic fires tells whether it could have helped at all."""
    found = steps_intervened_at(read(live))
    for condition in CELLS:
        assert found["scripted", condition] == Counter(1 + i % 2 for i in range(7))


@pytest.mark.usefixtures("undrawn")
def test_without_its_runs_a_pilot_still_has_a_report(live: Path, page: str, tmp_path: Path) -> None:
    """Transcripts are large and are the first thing to be deleted; the decision has to outlive them."""
    runs = tmp_path / "runs"
    shutil.copytree(live.parent.parent, runs)
    manifest = json.loads((live / "manifest.json").read_text())
    manifest["results"]["episodes"] = "runs/episodes/corridor-ba9876543210"
    copy = runs / "pilot" / live.name
    seal(copy, manifest)
    assert "Intervention (rollback)" in page_of(copy)  # moved along, and found
    shutil.rmtree(runs / "episodes")
    text = flat(Seen(page_of(copy)).text)
    assert "The runs were kept in runs/episodes/corridor-ba9876543210 and are gone" in text
    assert "rollback: 1 in 7 runs." in text
    assert "task-001 0 succeeded (4 steps, 20 tokens) failed (4 steps, 1 intervention, 20 tokens)" in text
    assert "Intervention (rollback)" not in text


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"origin": "file", "file": "mine.csv"}, "The runs were read from a file (mine.csv)"),
        ({"origin": "recorded", "set": "reflexion_mbpp"}, "The runs are recorded ones (reflexion_mbpp)"),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_runs_that_nobody_here_made_have_counts(tmp_path: Path, origin: dict[str, str], words: str) -> None:
    """Without a word on it, an empty section reads as: nothing was intervened in."""
    outcomes = [one.outcome for one in episodes({"rollback": "ABCD"})]
    text = flat(Seen(page_of(write_pilot(tmp_path, outcomes, origin=origin))).text)
    assert f"{words}, of which there are counts and no transcripts." in text
    assert "rollback: 1 in 4 runs." in text
    assert "What rollback did in them is not kept" in text
    assert "Control" not in text
    assert "task-001" in text
    assert "task-000" not in text


@pytest.mark.usefixtures("undrawn")
def test_what_a_table_of_successes_does_not_say_is_not_said_to_be_none(tmp_path: Path) -> None:
    """Of 60 rows of yes and no the page said: no run broke down, and 0 interventions in 60 runs."""
    outcomes = [
        one.outcome._replace(interventions=0, steps=0, tokens=0) for one in episodes({"rollback": "ABCD"})
    ]
    text = flat(Seen(page_of(write_pilot(tmp_path, outcomes, origin={"outcomes": "runs.csv"}))).text)
    assert "Whether any run broke down is not known" in text
    assert "At which steps they intervened, and how often, is not known." in text
    assert "0 in 4 runs" not in text
    assert "0 steps" not in text


@pytest.mark.usefixtures("undrawn")
def test_a_transcript_of_another_run_is_not_passed_off(tmp_path: Path) -> None:
    """A run that was made again since may have ended otherwise than the one that was decided on."""
    directory = write_pilot(tmp_path, episodes({"rollback": "BA"}))
    log = tmp_path / "episodes" / "corridor-ba9876543210" / EPISODES
    lines = read_log(log, Episode)
    changed = [
        one.model_copy(update={"success": True}) if one.condition == "rollback" else one for one in lines
    ]
    seal_log(log, [one.model_dump(mode="json") for one in changed])
    text = flat(Seen(page_of(directory)).text)
    assert "The runs were made again since, and are others than were decided on" in text
    assert "rollback task-000 action" not in text


@pytest.mark.usefixtures("undrawn")
def test_both_tries_of_best_of_two_are_told_apart(tmp_path: Path) -> None:
    """One run of eight steps would look like a run that went on after its end."""
    first, second = episode("t", "best_of_2", True), episode("t", "best_of_2", True, said="go south")
    steps = (*first.steps, *(step.model_copy(update={"attempt": 1}) for step in second.steps))
    both = first.model_copy(update={"steps": steps, "kept_attempt": 1, "tokens": 40})
    others = [episode("t", BASELINE, False), episode("t", "append", False)]
    text = flat(Seen(page_of(write_pilot(tmp_path, [*others, both]))).text)
    assert text.index("Try 1") < text.index("Try 2, kept by the critic") < text.index("go south, best_of_2")
    assert "No intervention was made under: append, best_of_2 (control)." in text


@pytest.mark.usefixtures("undrawn")
def test_runs_that_broke_down_are_counted_with_their_reasons(tmp_path: Path) -> None:
    """A pilot on broken runs says what breaks, not what helps."""
    found = episodes({"rollback": "ABCDA"})
    found = [one if one.success else one.model_copy(update={"reason": "agent: Timeout"}) for one in found]
    text = flat(Seen(page_of(write_pilot(tmp_path, found))).text)
    assert "6 of 10 runs broke down; they count as failures." in text
    assert "without intervention 3 agent: Timeout" in text
    assert "rollback 3 agent: Timeout" in text


def test_the_same_run_gives_the_same_bytes(live: Path, page: str) -> None:
    """A report that changes without its run can't be compared."""
    assert page_of(live) == page


def test_outcomes_of_another_decision_are_refused(tmp_path: Path) -> None:
    """The page would show runs that the sentence above them is not about."""
    directory = write_pilot(tmp_path / "one", episodes({"rollback": "ABCD"}))
    other = write_pilot(tmp_path / "other", episodes({"rollback": "ABDD"}))
    shutil.copy(other / "outcomes.jsonl", directory)
    record_files(directory, "outcomes.jsonl")
    with pytest.raises(UserError, match="is not of outcomes"):
        read(directory)


@pytest.mark.usefixtures("undrawn")
def test_the_stage_writes_the_page_and_prints_the_decision(
    live: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that the docs name has to do what they say, within 80 columns."""
    assert report_pilot(live, live.parent.parent) == live
    assert (live / "report.html").read_text(encoding="utf-8") == page_of(live)
    said = capsys.readouterr().out
    assert read_decision(live).sentence in flat(said)
    assert max(map(len, said.splitlines())) <= WIDTH


def test_a_run_without_a_report_says_what_to_do(tmp_path: Path) -> None:
    """`run=` takes any directory; the wrong one must not end in a traceback."""
    for file, words in (
        ("localisation.json", "a localisation has no report"),
        (EPISODES, "these are the runs of a pilot"),
    ):
        folder = tmp_path / file
        folder.mkdir()
        (folder / file).touch()
        seal(folder)
        assert is_of_a_pilot(folder)
        with pytest.raises(UserError, match=words):
            report_pilot(folder, tmp_path)
