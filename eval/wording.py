"""`monitorbench wording`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["wording"]

if __name__ == "__main__":
    main()
