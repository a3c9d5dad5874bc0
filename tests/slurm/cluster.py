"""A private one-node Slurm with eight pretend GPUs, for as long as a test session.

Everything it has lies in one folder: munge's key and socket, the daemons' state, logs and process ids.
No cgroups, no systemd, no accounting database; the host's own Slurm, if any, is not touched. Jobs of the
partition `urgent` take the node from those of `cheap`; a job may be a minute over its time limit.
"""

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

N_CPUS = 16
N_GPUS = 8
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


class CannotStart(Exception):
    """Why there is no Slurm here."""


class Cluster(NamedTuple):
    """A running cluster."""

    folder: Path
    environment: dict[str, str]
    """For every process that is to use it."""
    has_gpus: bool

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands, which has to succeed."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def jobs(self, job: int) -> dict[int, dict[str, str]]:
        """What the controller knows of each task of an array job, by task."""
        found = {}
        for line in self.ask("scontrol", "show", "job", "--oneliner", str(job)).splitlines():
            facts = dict(word.split("=", 1) for word in line.split() if "=" in word)
            task = facts["ArrayTaskId"].partition("%")[0]  # of a task not yet split off: with the limit
            if task.isdigit():
                found[int(task)] = facts
        return found

    def states(self, job: int) -> dict[int, str]:
        """Slurm's own state of each task."""
        return {task: facts["JobState"] for task, facts in self.jobs(job).items()}


@contextmanager
def private_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster in `folder`, and end its daemons afterwards.

    Raises:
        CannotStart: where Slurm or munge are missing or don't come up.

    """
    missing = [name for name in NEEDED if not shutil.which(name, path=_PATH)]
    if missing:
        raise CannotStart(f"{', '.join(missing)}: not installed; `make system-deps` installs Debian's Slurm")
    started: list[subprocess.Popen[bytes]] = []
    try:
        has_gpus = _configure(folder)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        environment = {**outside, "PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf")}
        munge = ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key"]
        munge += [f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid"]
        munge += [f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"]
        started.append(_start(munge, environment, folder / "munged.out"))
        _wait_for((folder / "munge.socket").exists, "munged", folder)
        started.append(_start(["slurmctld", "-D"], environment, folder / "slurmctld.out"))
        started.append(_start(["slurmd", "-D"], environment, folder / "slurmd.out"))
        cluster = Cluster(folder, environment, has_gpus)
        _wait_for(lambda: _is_idle(cluster), "slurmctld and slurmd", folder)
        yield cluster
        cluster.ask("scancel", f"--user={os.geteuid()}")
        _wait_for(lambda: not cluster.ask("squeue", "--noheader"), "the end of the last jobs", folder)
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _start(command: list[str], environment: dict[str, str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as stream:
        return subprocess.Popen(
            command, env=environment, stdout=stream, stderr=stream, start_new_session=True
        )


def _wait_for(ready: Callable[[], object], what: str, folder: Path, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            said = [text[-300:] for out in folder.glob("*.out") if (text := out.read_text(errors="replace"))]
            raise CannotStart(
                f"{what} did not come up in {seconds:.0f} s: {' '.join(' '.join(said).split())}"
            )
        time.sleep(0.05)


def _is_idle(cluster: Cluster) -> bool:
    done = subprocess.run(
        ["sinfo", "--noheader", "--format=%T"],
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0 and set(done.stdout.split()) == {"idle"}


def _configure(folder: Path) -> bool:
    """Write every file; returns whether there are pretend GPUs, which takes making character devices."""
    for name in ("state", "spool", "gpus"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    folder.chmod(0o755)
    gpus = [folder / "gpus" / f"pretend{number}" for number in range(N_GPUS)]
    try:
        for gpu in gpus:
            os.mknod(gpu, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # another /dev/null
            gpu.read_bytes()  # a folder mounted without devices lets them be made, not opened
    except OSError:
        gpus = []
    host = socket.gethostname().partition(".")[0]
    controller, node = _free_ports(2)
    gres = "".join(f"NodeName={host} Name=gpu Flags=nvidia_gpu_env File={gpu}\n" for gpu in gpus)
    (folder / "gres.conf").write_text(f"AutoDetect=off\n{gres}")
    user = pwd.getpwuid(os.geteuid()).pw_name
    (folder / "slurm.conf").write_text(
        f"""ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
KillWait=5
OverTimeLimit=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0
{"GresTypes=gpu" if gpus else ""}
NodeName={host} NodeAddr=127.0.0.1 CPUs={N_CPUS} {f"Gres=gpu:{N_GPUS}" if gpus else ""} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP PreemptMode=OFF
PartitionName=cheap Nodes={host} PriorityTier=1 PreemptMode=REQUEUE GraceTime=120 State=UP
PartitionName=urgent Nodes={host} PriorityTier=10 PreemptMode=OFF State=UP
"""
    )
    return bool(gpus)


def _free_ports(n: int) -> list[int]:
    with_sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [int(one.getsockname()[1]) for one in with_sockets]
    for one in with_sockets:
        one.close()
    return ports
