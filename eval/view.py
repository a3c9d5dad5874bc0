"""`monitorbench view`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["view"]

if __name__ == "__main__":
    main()
