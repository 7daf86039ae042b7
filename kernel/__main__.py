"""`python -m kernel`: the command line, which lives in dispatch; this is the one place that names it."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run the command line. A signal that comes while its modules load ends the process at once, and says nothing."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os._exit(128 + number))
    from dispatch.cli import main as run

    run()


if __name__ == "__main__":
    main()
