"""`monitorbench fit`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["fit"]

if __name__ == "__main__":
    main()
