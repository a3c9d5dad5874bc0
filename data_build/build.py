"""`monitorbench build`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["build"]

if __name__ == "__main__":
    main()
