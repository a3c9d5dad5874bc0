"""`monitorbench serve`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["serve"]

if __name__ == "__main__":
    main()
