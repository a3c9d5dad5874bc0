"""`monitorbench doctor`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["doctor"]

if __name__ == "__main__":
    main()
