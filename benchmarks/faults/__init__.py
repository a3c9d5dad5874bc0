"""Real faults against the real stages: what is left undisturbed, what is refused, what nobody would notice.

`kills`: SIGKILL at random system calls of build, evaluation, training and pilot, alone and in chains, and
writes that fail as on a full disk; the same command again has to give the undisturbed results (needs Debian's
strace). `endpoint`: an evaluation against an endpoint that misbehaves in each of the ways of
`faults/modes.py`. `flips`: single flipped bits in each kind of file that a stage reads back. Takes at most
20 minutes on two cores. Prints how faults ended, by kind, and of the silent ones what was wrong and the
command that does it again; all are in `outcomes.json`. Exit code 1 where one is silent.
"""

import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from benchmarks.measuring import ROOT, Ratio, Result

if TYPE_CHECKING:
    from benchmarks.faults.endpoint_server import Endpoint
    from benchmarks.faults.stages import Shared

# Read when the libraries are imported: one thread a process, and nothing from the hub.
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
sys.path.append(str(ROOT / "tests"))  # its small models

MOST_SHOWN = 20
"""Silent faults of a kind that are printed."""
PARTS = ("kills", "endpoint", "flips")
Ending = Literal["undisturbed", "refused", "silent"]


class Outcome(NamedTuple):
    """One fault: what it was done to, how to do it again, and how that ended."""

    kind: str
    case: str
    """Names the fault; with the seed, `--only … --case …` does it again."""
    ending: Ending
    """`undisturbed`: the results are those without the fault. `refused`: one line, or an answer that is
    unscored with its reason or still pending. `silent`: everything else, a traceback included."""
    why: str = ""

    @property
    def campaign(self) -> str:
        """The campaign that the fault is of."""
        kind = self.kind.split()[0]
        return {"kill": "kills", "disk": "kills", "flip": "flips"}.get(kind, kind)


Job = Callable[[], list[Outcome]]
_jobs: list[Job] = []
"""Work of the forked processes of `_run_jobs`."""


class Sizes(NamedTuple):
    """How many faults there are of each kind, and which one alone where a case is named."""

    seed: int
    kills: int
    disks: int
    modes: int
    flips: int
    stages: str
    case: str
    jobs: int


def main(
    work: Path,
    *,
    seed: int,
    kills: int,
    disks: int,
    modes: int,
    flips: int,
    only: str,
    stages: str,
    case: str,
    jobs: int,
) -> Result:
    """Run the campaigns that `only` names."""
    from benchmarks.faults.endpoint_server import endpoint
    from benchmarks.faults.kills import missing_tool
    from benchmarks.faults.shared import make_shared
    from benchmarks.faults.stages import warm_up

    parts = only.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        raise SystemExit(f"--only: no part {', '.join(unknown)}; expected some of {', '.join(PARTS)}")
    print(f"seed {seed}")
    sizes, outcomes = Sizes(seed, kills, disks, modes, flips, stages, case, jobs), list[Outcome]()
    warm_up()
    shared = make_shared(work / "shared", whole="flips" in parts)
    with endpoint() as server:
        for part in parts:
            if part == "kills" and (why := missing_tool()):
                print(f"kills: skipped, {why}")
                continue
            make_jobs = {"kills": _kill_jobs, "endpoint": _endpoint_jobs, "flips": _flip_jobs}[part]
            began = time.monotonic()
            of_part = _run_jobs(make_jobs(work, sizes, shared, server), jobs)
            print(f"{part}: {len(of_part)} faults in {time.monotonic() - began:.0f} s", flush=True)
            outcomes += of_part
    outcomes.sort(key=lambda outcome: (PARTS.index(outcome.campaign), outcome.kind))
    details = {"seed": seed, "outcomes": [outcome._asdict() for outcome in outcomes]}
    (work / "outcomes.json").write_text(json.dumps(details, indent=1) + "\n", encoding="utf-8")
    silent = [outcome for outcome in outcomes if outcome.ending == "silent"]
    shown = Counter[str]()
    for outcome in silent:
        shown[outcome.kind] += 1
        if shown[outcome.kind] <= MOST_SHOWN:
            print(f"SILENT {outcome.kind}: {outcome.why}")
            again = f'--seed {seed} --only {outcome.campaign} --case "{outcome.case}"'
            print(f"  python benchmarks/run.py faults {again}")
    return Result(counts(outcomes), {"silent faults": Ratio(len(silent), most=0)}, {"seed": seed})


def counts(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Count the faults that were tried, and how they ended, by kind and in all."""
    found: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        for kind in (outcome.kind, "all"):
            found.setdefault(kind, Counter()).update(("tried", outcome.ending))
    found["all"] = found.pop("all", Counter())  # last
    names = ("tried", "undisturbed", "refused", "silent")
    return {kind: {name: counted[name] for name in names} for kind, counted in found.items()}


def _kill_jobs(work: Path, sizes: Sizes, shared: "Shared", server: "Endpoint") -> list[Job]:
    """One job a stage: killed until its share of the kills has hit, then its share of failing writes."""
    from benchmarks.faults import kills
    from benchmarks.faults.stages import Stage, stages

    by_name, case = stages(shared, server.base("well")), sizes.case

    def job(stage: Stage) -> list[Outcome]:
        kills.adopt_orphans()
        folder = work / "kills" / stage.name.replace(" ", "-")
        expected = kills.undisturbed(stage, folder)
        if case:
            fault = kills.failing_write if case.startswith("disk ") else kills.kill
            return [fault(stage, expected, sizes.seed, int(case.rpartition(":")[2]), folder)]
        outcomes, hits = list[Outcome](), 0
        while hits < stage.share * sizes.kills:
            outcomes.append(kills.kill(stage, expected, sizes.seed, len(outcomes), folder))
            hits += kills.kills_in(outcomes[-1])
        for number in range(round(stage.share * sizes.disks)):
            outcomes.append(kills.failing_write(stage, expected, sizes.seed, number, folder))
        return outcomes

    name = case.removeprefix("disk ").rpartition(":")[0] or sizes.stages
    return [partial(job, by_name[name]) for name in (name.split(",") if name else by_name)]


def _endpoint_jobs(work: Path, sizes: Sizes, shared: "Shared", server: "Endpoint") -> list[Job]:
    """The modes, in as many jobs as there are processes."""
    from benchmarks.faults import endpoints
    from benchmarks.faults.modes import MODES

    wanted = [sizes.case] if sizes.case else list(MODES)[: sizes.modes or None]

    def job(number: int) -> list[Outcome]:
        scene = endpoints.scene(server, shared.data, work / "endpoint" / str(number))
        return [endpoints.misbehave(scene, mode) for mode in wanted[number :: sizes.jobs]]

    return [partial(job, number) for number in range(min(sizes.jobs, len(wanted)))]


def _flip_jobs(work: Path, sizes: Sizes, shared: "Shared", server: "Endpoint") -> list[Job]:
    """One job a kind of file, each on a copy of everything."""
    from benchmarks.faults import flips

    names = [kind.name for kind in flips.kinds(flips.copied(shared, work / "flips" / "names"))]
    wanted_name, _, wanted_number = sizes.case.rpartition(":")

    def job(index: int) -> list[Outcome]:
        kind = flips.kinds(flips.copied(shared, work / "flips" / str(index)))[index]
        numbers = [int(wanted_number)] if wanted_number else range(sizes.flips)
        return list(flips.flipped(kind, sizes.seed, numbers))

    return [partial(job, i) for i, name in enumerate(names) if wanted_name in ("", name)]


def _run_jobs(jobs: Sequence[Job], processes: int) -> list[Outcome]:
    """Run jobs in forked processes; one that fails without any fault is a silent outcome of its own."""
    _jobs[:] = jobs
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        for future in as_completed([pool.submit(_run, index) for index in range(len(_jobs))]):
            outcomes += future.result()
    return outcomes


def _run(index: int) -> list[Outcome]:
    try:
        return _jobs[index]()
    except RuntimeError as error:
        return [Outcome("kill without a fault", "", "silent", str(error))]
