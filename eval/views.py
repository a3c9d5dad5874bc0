"""`monitorbench views`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["views"]

if __name__ == "__main__":
    main()
