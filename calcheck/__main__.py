"""`python -m calcheck`."""

from calcheck.cli import main

if __name__ == "__main__":
    main()
