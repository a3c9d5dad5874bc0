"""`monitorbench combine`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["combine"]

if __name__ == "__main__":
    main()
