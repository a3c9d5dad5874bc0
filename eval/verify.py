"""`monitorbench verify`, as a script."""

from monitorbench.cli.stages import VERIFY as main

if __name__ == "__main__":
    main()
