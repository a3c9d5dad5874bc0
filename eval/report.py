"""`monitorbench report`, as a script."""

from monitorbench.cli.stages import REPORT as main

if __name__ == "__main__":
    main()
