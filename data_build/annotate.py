"""`monitorbench annotate`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["annotate"]

if __name__ == "__main__":
    main()
