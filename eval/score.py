"""`monitorbench score`, as a script."""

from monitorbench.cli.stages import STAGES

main = STAGES["score"]

if __name__ == "__main__":
    main()
