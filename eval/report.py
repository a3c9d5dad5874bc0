"""`monitorbench report`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["report"]

if __name__ == "__main__":
    main()
