"""`monitorbench recommend`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["recommend"]

if __name__ == "__main__":
    main()
