"""`python -m monitorbench.cli` does what `monitorbench` does."""

from monitorbench.cli.main import main

if __name__ == "__main__":
    main()
