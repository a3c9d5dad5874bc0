"""`monitorbench probe`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["probe"]

if __name__ == "__main__":
    main()
