"""`monitorbench transfer`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["transfer"]

if __name__ == "__main__":
    main()
