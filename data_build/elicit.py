"""`monitorbench elicit`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["elicit"]

if __name__ == "__main__":
    main()
