"""`monitorbench gate`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["gate"]

if __name__ == "__main__":
    main()
