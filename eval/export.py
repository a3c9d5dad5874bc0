"""`monitorbench export`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["export"]

if __name__ == "__main__":
    main()
