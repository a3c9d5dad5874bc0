"""`monitorbench audit`, as a script."""

from monitorbench.cli.stages import AUDIT as main

if __name__ == "__main__":
    main()
