"""`monitorbench score`, as a script."""

from monitorbench.cli.stages import SCORE as main

if __name__ == "__main__":
    main()
