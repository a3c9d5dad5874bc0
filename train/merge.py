"""`monitorbench merge`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["merge"]

if __name__ == "__main__":
    main()
