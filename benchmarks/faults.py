"""Real faults against the real stages: what is left undisturbed, what is refused, what nobody would notice.

    python benchmarks/faults.py [--seed 0] [--kills 100] [--flips 1000] [--only kills,endpoint,flips]

`kills`: SIGKILL at random system calls of build, evaluation, training and pilot, alone and in chains, and
writes that fail as on a full disk; the same command again has to give the undisturbed results (needs Debian's
strace). `endpoint`: an evaluation against an endpoint that misbehaves in each of the ways of
`fault_campaigns/modes_*.py`. `flips`: single flipped bits in each kind of file that a stage reads back.
Takes at most 20 minutes on two cores. Prints a table and, of the silent faults, what was wrong and the
command that does it again; all are in `runs/benchmarks/faults/outcomes.json`. Exit code 1 where one is.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from fault_campaigns import endpoints, files, flips, kills, stages
from fault_campaigns.endpoint_server import Endpoint, endpoint
from fault_campaigns.modes import MODES
from fault_campaigns.outcomes import Outcome, table, write
from fault_campaigns.shared import make_shared

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "runs" / "benchmarks" / "faults"
MOST_SHOWN = 20
"""Silent faults of a kind that are printed."""
PARTS = ("kills", "endpoint", "flips")
Job = Callable[[], list[Outcome]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 where a fault is silent."""
    asked = _asked(arguments)
    print(f"seed {asked.seed}")
    parts = asked.only.split(",")
    if "kills" in parts and (why := kills.missing_tool()):
        print(f"kills: skipped, {why}")
        parts.remove("kills")
    began = time.monotonic()
    stages.warm_up()
    shared = make_shared(asked.work / "shared", whole="flips" in parts)
    outcomes: list[Outcome] = []
    with endpoint() as server:
        for part in parts:
            jobs = {
                "kills": lambda: kill_jobs(asked, shared, server),
                "endpoint": lambda: endpoint_jobs(asked, shared, server),
                "flips": lambda: flip_jobs(asked, shared),
            }[part]()
            part_began = time.monotonic()
            found = run_jobs(jobs, asked.jobs)
            print(f"{part}: {len(found)} faults in {time.monotonic() - part_began:.0f} s", flush=True)
            outcomes += found
    outcomes.sort(key=lambda one: (PARTS.index(part_of(one)), one.kind))
    write(asked.work / "outcomes.json", asked.seed, outcomes)
    return show(outcomes, asked.seed, time.monotonic() - began)


def show(outcomes: Sequence[Outcome], seed: int, seconds: float) -> int:
    """Print the silent faults and the table; 1 where there are silent ones."""
    silent = [one for one in outcomes if one.ending == "silent"]
    shown = Counter[str]()
    for one in silent:
        shown[one.kind] += 1
        if shown[one.kind] <= MOST_SHOWN:
            print(f"SILENT {one.kind}: {one.why}")
            print(f'  python benchmarks/faults.py --seed {seed} --only {part_of(one)} --case "{one.case}"')
    print(f"\n{table(outcomes)}\nseed {seed}, {seconds / 60:.1f} minutes")
    return 1 if silent else 0


def part_of(outcome: Outcome) -> str:
    """Which campaign an outcome is of."""
    return {"kill": "kills", "disk": "kills", "endpoint": "endpoint", "flip": "flips"}[
        outcome.kind.split()[0]
    ]


def kill_jobs(asked: argparse.Namespace, shared: stages.Shared, server: Endpoint) -> list[Job]:
    """One job a stage: killed until its share of the kills has hit, then its share of failing writes."""
    known = stages.stages(shared, server.base("well"))

    def job(stage: stages.Stage) -> list[Outcome]:
        kills.adopt_orphans()
        folder = asked.work / "kills" / stage.name.replace(" ", "-")
        expected = kills.undisturbed(stage, folder)
        if asked.case:
            fault = kills.failing_write if asked.case.startswith("disk ") else kills.kill
            return [fault(stage, expected, asked.seed, int(asked.case.rpartition(":")[2]), folder)]
        found, hits, number = list[Outcome](), 0, 0
        while hits < stage.share * asked.kills:
            found.append(kills.kill(stage, expected, asked.seed, number, folder))
            hits, number = hits + kills.kills_in(found[-1]), number + 1
        for number in range(round(stage.share * asked.disks)):
            found.append(kills.failing_write(stage, expected, asked.seed, number, folder))
        return found

    name = asked.case.removeprefix("disk ").rpartition(":")[0]
    names = [name] if name else asked.stages or list(known)
    return [lambda stage=stage: job(stage) for stage in map(known.__getitem__, names)]  # type: ignore[misc]


def endpoint_jobs(asked: argparse.Namespace, shared: stages.Shared, server: Endpoint) -> list[Job]:
    """The modes, in as many jobs as there are processes."""
    wanted = [asked.case] if asked.case else list(MODES)[: asked.modes]

    def job(number: int) -> list[Outcome]:
        scene = endpoints.scene(server, shared.data, asked.work / "endpoint" / str(number))
        return [endpoints.misbehave(scene, mode) for mode in wanted[number :: asked.jobs]]

    return [lambda number=number: job(number) for number in range(min(asked.jobs, len(wanted)))]  # type: ignore[misc]


def flip_jobs(asked: argparse.Namespace, shared: stages.Shared) -> list[Job]:
    """One job a kind of file, each on a copy of everything."""
    names = [kind.name for kind in files.kinds(files.copied(shared, asked.work / "flips" / "names"))]

    def job(index: int) -> list[Outcome]:
        copy = files.copied(shared, asked.work / "flips" / str(index))
        kind = files.kinds(copy)[index]
        numbers = [int(asked.case.rpartition(":")[2])] if asked.case else range(asked.flips)
        return list(flips.flipped(kind, asked.seed, numbers))

    wanted = [i for i, name in enumerate(names) if not asked.case or asked.case.rpartition(":")[0] == name]
    return [lambda index=index: job(index) for index in wanted]  # type: ignore[misc]


_jobs: list[Job] = []
"""What the forked processes of `run_jobs` do."""


def run_jobs(jobs: Iterable[Job], processes: int) -> list[Outcome]:
    """Run jobs in forked processes; one that fails without any fault is a silent outcome of its own."""
    _jobs[:] = jobs
    found: list[Outcome] = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        for future in as_completed([pool.submit(_run, index) for index in range(len(_jobs))]):
            found += future.result()
    return found


def _run(index: int) -> list[Outcome]:
    try:
        return _jobs[index]()
    except RuntimeError as error:
        return [Outcome("kill without a fault", "", "silent", str(error))]


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the faults that are drawn")
    parser.add_argument("--kills", type=int, default=100, help="kills that hit, over all stages")
    parser.add_argument("--disks", type=int, default=40, help="failing writes, over all stages")
    parser.add_argument("--modes", type=int, default=None, help="the first so many of the endpoint's modes")
    parser.add_argument("--flips", type=int, default=1000, help="in each kind of file")
    parser.add_argument("--only", default=",".join(PARTS), help="parts of the campaign")
    parser.add_argument("--stages", default="", help="those that are killed, with commas between; all")
    parser.add_argument("--case", default="", help="one fault, as a silent one is named")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for all that is made")
    asked = parser.parse_args(arguments)
    asked.stages = asked.stages.split(",") if asked.stages else []
    asked.work = asked.work.resolve()
    return asked


if __name__ == "__main__":
    sys.exit(main())
