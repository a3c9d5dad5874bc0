"""`monitorbench import`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["import"]

if __name__ == "__main__":
    main()
