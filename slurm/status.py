"""Show what became of every run of a sweep: done, running, queued, failed or pending.

python slurm/status.py runs/sweeps/NAME-HASH
"""

from monitorbench.sweeps.scripts import status

if __name__ == "__main__":
    status()
