"""`monitorbench elicit`, as a script."""

from monitorbench.cli.stages import ELICIT as main

if __name__ == "__main__":
    main()
