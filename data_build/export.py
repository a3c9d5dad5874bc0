"""`monitorbench export`, as a script."""

from monitorbench.cli.stages import EXPORT as main

if __name__ == "__main__":
    main()
