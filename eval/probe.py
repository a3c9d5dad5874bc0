"""`monitorbench probe`, as a script."""

from monitorbench.cli.stages import PROBE as main

if __name__ == "__main__":
    main()
