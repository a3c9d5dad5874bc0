"""`monitorbench train`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["train"]

if __name__ == "__main__":
    main()
