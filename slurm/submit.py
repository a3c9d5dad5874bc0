"""Freeze every run of a sweep, submit them as one Slurm array, and exit.

    python slurm/submit.py train/sft.py seed=0,1,2 cluster=h100 --dry-run
    python slurm/submit.py train/sft.py seed=0,1,2 cluster=h100 plan=true   # starts nothing

Prints the job's id, and the sweep's directory as its last line. `--local --jobs N` needs no Slurm.
"""

from monitorbench.sweeps.scripts import submit

if __name__ == "__main__":
    submit()
