"""`monitorbench push`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["push"]

if __name__ == "__main__":
    main()
