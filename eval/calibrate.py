"""`monitorbench calibrate`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["calibrate"]

if __name__ == "__main__":
    main()
