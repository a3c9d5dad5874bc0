"""`monitorbench audit`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["audit"]

if __name__ == "__main__":
    main()
