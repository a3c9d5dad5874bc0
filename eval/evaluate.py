"""`monitorbench evaluate`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["evaluate"]

if __name__ == "__main__":
    main()
