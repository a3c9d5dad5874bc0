"""`monitorbench pilot`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["pilot"]

if __name__ == "__main__":
    main()
