"""What Slurm's commands print is read line by line: among it are banners and other people's jobs."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitorbench.config.base import UserError
from monitorbench.config.study import Cluster
from monitorbench.sweeps import slurm
from monitorbench.sweeps.slurm import RunState, State, states, submit
from monitorbench.sweeps.sweep import Manifest, Submission, Sweep, read

N_RUNS = 6
CLUSTER = Cluster(
    name="cpu",
    partition=None,
    account=None,
    gpus=0,
    gpu_type=None,
    cpus=1,
    memory=None,
    time=None,
    grace_seconds=60,
    parallel=None,
    options=(),
    setup=(),
)
BANNERS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "",
                "   ",
                "*** maintenance on Tuesday ***",
                "| 5 | NOTICE | 42 |",
                "CLUSTER: far",
                "sbatch: This job will be charged to the account lab. Balance: 497 hours",
                "Hinweis: Größe der Warteschlange überschritten ��",
                "0|PENDING|9999|other|lab",
                "9999_0|FAILED",
                "JobId=9999 ArrayJobId=9999 ArrayTaskId=0 JobName=other JobState=FAILED",
            ]
        ),
        st.text(st.characters(exclude_characters="|=\r\n", exclude_categories=["Nd", "Cs"]), max_size=40),
    ),
    max_size=4,
)
"""Lines that sites and other people's jobs put among those that were asked for."""


def _sweep(folder: Path, *jobs: int | None) -> Sweep:
    at = "2026-01-01T00:00:00+00:00"
    manifest = Manifest(
        script="train",
        folder=folder,
        overrides=(),
        points=tuple((f"seed={run}",) for run in range(N_RUNS)),
        git_commit=None,
        submissions=tuple(Submission(job=job, runs=tuple(range(N_RUNS)), at=at) for job in jobs),
    )
    return Sweep(folder / "sweeps" / "sft-0123456789ab", manifest)


@contextmanager
def _printing(answers: Mapping[str, str]) -> Iterator[list[tuple[str, ...]]]:
    """Slurm's commands print these texts, and fail where they have none; gives what was asked."""
    asked: list[tuple[str, ...]] = []

    def ask(*command: str) -> str:
        asked.append(command)
        if command[0] not in answers:
            raise UserError(f"{command[0]}: not here")
        return answers[command[0]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slurm, "_ask", ask)
        yield asked


def _amid(draw: Callable[[st.SearchStrategy[list[str]]], list[str]], lines: list[str]) -> str:
    """Lines with banners before, between and after them."""
    mixed = list(draw(BANNERS))
    for line in lines:
        mixed += [line, *draw(BANNERS)]
    return "".join(f"{line}\n" for line in mixed)


@given(st.data(), st.sampled_from(["4242", " 4242  ", "4242;far", "Submitted batch job 4242 on cluster far"]))
def test_the_job_s_id_is_found_among_banners(tmp_path_factory: pytest.TempPathFactory, data, line: str):
    """A job that is queued while its id is in no manifest is submitted a second time."""
    sweep = _sweep(tmp_path_factory.mktemp("sweep"))
    sweep.path.mkdir(parents=True)
    banners = [text for text in data.draw(BANNERS) if not text.strip().isdigit()]
    with _printing({"sbatch": "\n".join([*banners, line, ""])}):
        assert submit(sweep, CLUSTER, [0, 2], []) == 4242
    (noted,) = read(sweep.path).manifest.submissions
    assert (noted.job, noted.runs) == (4242, (0, 2))
    assert noted.cluster == ("far" if "far" in line else None)


@pytest.mark.parametrize("printed", ["", "sbatch: your job was queued, thank you\n", "no 42 here\n"])
def test_a_submission_without_an_id_is_written_down(tmp_path: Path, printed: str):
    """Its runs may be queued: a manifest that doesn't know has them submitted twice."""
    sweep = _sweep(tmp_path)
    sweep.path.mkdir(parents=True)
    with _printing({"sbatch": printed}), pytest.raises(UserError) as refused:
        submit(sweep, CLUSTER, range(N_RUNS), [])
    assert (printed.strip() or "nothing") in str(refused.value)
    assert "\n" not in str(refused.value)
    unknown = read(sweep.path)
    assert [entry.job for entry in unknown.manifest.submissions] == [None]
    queue = f"0-2|PENDING|77|{sweep.path.name}|lab\n3|RUNNING|77|{sweep.path.name}|lab\n"
    twin = f"4|RUNNING|78|{sweep.path.name}|/another/sweeps/{sweep.path.name}\n"
    with _printing({"squeue": queue + twin, "sacct": "77_5|TIMEOUT\n"}) as asked:
        assert [run.state for run in states(unknown)] == [
            *[State.QUEUED] * 3,
            State.RUNNING,
            State.PENDING,
            State.FAILED,
        ]
    assert f"--name={sweep.path.name}" in asked[-1]


def test_a_refused_submission_leaves_nothing(tmp_path: Path):
    """A note of a job that never was would be asked for at every later look."""
    sweep = _sweep(tmp_path)
    sweep.path.mkdir(parents=True)
    with _printing({}), pytest.raises(UserError, match="sbatch: not here"):
        submit(sweep, CLUSTER, [0], [])
    assert read(sweep.path).manifest.submissions == ()
    assert not list(sweep.path.glob("submit-*"))


WORDS = ("PENDING", "RUNNING", "REQUEUED", "COMPLETING", "COMPLETED", None)


@given(st.data(), st.lists(st.sampled_from(WORDS), min_size=N_RUNS, max_size=N_RUNS))
def test_the_queue_is_read_among_banners(data, words: list[str | None]):
    """A banner's line ends in a traceback; a comment of the site's has queued runs submitted again."""
    comment = data.draw(st.sampled_from(["lab-project-42", "", "a|b", "/scratch/sweeps/sft-0123456789ab"]))
    pad = data.draw(st.sampled_from(["", " ", "   "]))
    lines = [
        f"{run}|{pad}{word}{pad}|4242{pad}|name|{comment}"
        for run, word in enumerate(words)
        if word is not None
    ]
    sweep = _sweep(Path("/work"), 4242)
    with _printing({"squeue": _amid(data.draw, lines)}):
        shown = [run.state for run in states(sweep)]
    waiting = {"PENDING", "REQUEUED"}
    running = {"RUNNING", "COMPLETING"}
    expected = [
        State.QUEUED if word in waiting else State.RUNNING if word in running else State.PENDING
        for word in words
    ]
    assert shown == expected


@given(st.data(), st.sets(st.integers(0, N_RUNS - 1), min_size=1), st.booleans())
def test_an_array_that_is_not_split_up_is_all_of_its_tasks(data, tasks: set[int], is_in_job: bool):
    """A waiting array is one line where a wrapper drops --array: `4242_[0-3%2]`."""
    text = ",".join(map(str, sorted(tasks)))
    spelled = data.draw(st.sampled_from([f"[{text}]", f"[{text}%2]", f"{text}%2"]))
    line = f"N/A|PENDING|4242_{spelled}|n|c" if is_in_job else f"{spelled}|PENDING|4242|n|c"
    with _printing({"squeue": _amid(data.draw, [line])}):
        shown = states(_sweep(Path("/work"), 4242))
    assert {run for run, state in enumerate(shown) if state == RunState(State.QUEUED, "job 4242")} == tasks


@pytest.mark.parametrize(
    ("spelled", "tasks"),
    [
        ("0-3%2", [0, 1, 2, 3]),
        ("[0-4:2,5]", [0, 2, 4, 5]),
        ("0,1,...", range(N_RUNS)),
        ("0-9999999999", range(N_RUNS)),
    ],
)
def test_the_tasks_of_an_array(spelled: str, tasks: list[int]):
    """A step, a limit, a list that Slurm cut off: those are its spellings."""
    with _printing({"squeue": f"{spelled}|PENDING|4242|n|c\n"}):
        shown = states(_sweep(Path("/work"), 4242))
    assert [run for run, state in enumerate(shown) if state.state is State.QUEUED] == list(tasks)


@given(st.data(), st.booleans())
def test_what_slurm_remembers_is_read_among_banners(data, has_accounting: bool):
    """A run killed for its memory leaves no marker: a line that isn't read leaves it pending for ever."""
    if has_accounting:
        rows = ["4242_0|OUT_OF_MEMORY", " 4242_1|CANCELLED by 0|extra ", "4242_[2-3%2]|PENDING"]
        answers = {"sacct": _amid(data.draw, rows)}
    else:
        rows = [
            f"JobId={900 + run} ArrayJobId=4242 ArrayTaskId={tasks} JobName=x Comment=a b JobState={word} R=y"
            for run, (tasks, word) in enumerate(
                [("0", "OUT_OF_MEMORY"), ("1", "CANCELLED"), ("2-3%2", "PENDING")]
            )
        ]
        answers = {"scontrol": _amid(data.draw, rows)}
    with _printing({"squeue": "", **answers}):
        shown = states(_sweep(Path("/work"), 4242))
    assert shown == [
        RunState(State.FAILED, "out_of_memory"),
        RunState(State.PENDING, "cancelled"),
        *[RunState(State.PENDING)] * 4,
    ]


def test_a_job_of_another_cluster_is_asked_for_there(tmp_path: Path):
    """The queue of the wrong cluster is empty, and all runs would be submitted again."""
    sweep = _sweep(tmp_path, 4242)
    entry = sweep.manifest.submissions[0].model_copy(update={"cluster": "far"})
    far = Sweep(sweep.path, sweep.manifest.model_copy(update={"submissions": (entry,)}))
    with _printing({"squeue": "CLUSTER: far\n0-5|PENDING|4242|n|c\n"}) as asked:
        assert {run.state for run in states(far)} == {State.QUEUED}
    assert asked[0][:2] == ("squeue", "--clusters=far")


def test_a_person_s_defaults_hide_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SQUEUE_PARTITION in a profile hides half of the queue; a banner may hold bytes that are no text."""
    (tmp_path / "squeue").write_text(
        "#!/bin/sh\n[ -z \"$SQUEUE_PARTITION\" ] && printf 'caf\\351\\n0|PENDING|4242|n|c\\n'\n"
    )
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SQUEUE_PARTITION", "gpu")
    assert states(_sweep(tmp_path, 4242))[0] == RunState(State.QUEUED, "job 4242")


def test_a_queue_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Taken for an empty one, all runs would be submitted again."""
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: no controller' >&2; exit 1\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UserError, match="squeue: slurm_load_jobs error: no controller"):
        states(_sweep(tmp_path, 4242))
