"""`monitorbench mirror`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["mirror"]

if __name__ == "__main__":
    main()
