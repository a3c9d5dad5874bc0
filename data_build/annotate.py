"""`monitorbench annotate`, as a script."""

from monitorbench.cli.stages import ANNOTATE as main

if __name__ == "__main__":
    main()
