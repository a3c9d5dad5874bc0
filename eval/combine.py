"""`monitorbench combine`, as a script."""

from monitorbench.cli.stages import COMBINE as main

if __name__ == "__main__":
    main()
