"""`monitorbench evaluate`, as a script."""

from monitorbench.cli.stages import EVALUATE as main

if __name__ == "__main__":
    main()
