"""`monitorbench verify`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["verify"]

if __name__ == "__main__":
    main()
