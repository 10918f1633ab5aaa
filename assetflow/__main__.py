"""`python -m assetflow`: the command line."""

from assetflow.cli import main

if __name__ == "__main__":
    main()
