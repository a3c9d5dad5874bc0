"""`monitorbench merge`, as a script."""

from monitorbench.cli.stages import MERGE as main

if __name__ == "__main__":
    main()
