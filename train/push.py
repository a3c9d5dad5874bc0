"""`monitorbench push`, as a script."""

from monitorbench.cli.stages import PUSH as main

if __name__ == "__main__":
    main()
