"""`monitorbench choose`, as a script."""

from monitorbench.cli.stages import CHOOSE as main

if __name__ == "__main__":
    main()
