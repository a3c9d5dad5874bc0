"""`monitorbench choose`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["choose"]

if __name__ == "__main__":
    main()
