"""`monitorbench queue`, as a script; `queue.py` would hide a module of Python."""

from monitorbench.cli.stages import STAGES

main = STAGES["queue"]

if __name__ == "__main__":
    main()
