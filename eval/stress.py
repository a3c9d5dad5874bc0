"""`monitorbench stress`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["stress"]

if __name__ == "__main__":
    main()
