"""`monitorbench pilot`, as a script."""

from monitorbench.cli.stages import PILOT as main

if __name__ == "__main__":
    main()
