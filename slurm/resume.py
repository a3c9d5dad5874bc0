"""Start the runs of a sweep that failed or never ran, from the same frozen files.

    python slurm/resume.py runs/sweeps/NAME-HASH

Prints the sweep's directory as its last line.
"""

from monitorbench.sweeps.scripts import resume

if __name__ == "__main__":
    resume()
