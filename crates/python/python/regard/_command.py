"""The command ``regard``."""

import signal
import sys

from . import _regard


def main() -> None:
    """Runs the command with the arguments of this process and ends with its exit status."""
    # The command handles Ctrl-C itself, as the program does; without this Python would raise after
    # it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_regard.run(sys.argv[1:]))
