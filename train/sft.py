"""`monitorbench train`, as a script."""

from monitorbench.cli.stages import TRAIN as main

if __name__ == "__main__":
    main()
