"""``python -m regard`` is the command ``regard``."""

from ._command import main

if __name__ == "__main__":
    main()
