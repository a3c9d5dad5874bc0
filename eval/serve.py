"""`monitorbench serve`, as a script."""

from monitorbench.cli.stages import SERVE as main

if __name__ == "__main__":
    main()
