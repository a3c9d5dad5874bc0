"""`monitorbench label`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["label"]

if __name__ == "__main__":
    main()
