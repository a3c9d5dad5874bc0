"""`monitorbench control`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["control"]

if __name__ == "__main__":
    main()
