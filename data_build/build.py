"""`monitorbench build`, as a script."""

from monitorbench.cli.stages import BUILD as main

if __name__ == "__main__":
    main()
