"""`monitorbench calibrate`, as a script."""

from monitorbench.cli.stages import CALIBRATE as main

if __name__ == "__main__":
    main()
