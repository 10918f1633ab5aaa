"""A process that records an update at each line of its input, and prints when it was committed (monotonic, seconds)."""

import sys
import time

from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, update

if __name__ == "__main__":
    with Ledger.open(sys.argv[1]) as ledger:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for _ in sys.stdin:
            ledger.writer.events.record([update(A)], NOW)
            sys.stdout.write(f"{time.monotonic()}\n")
            sys.stdout.flush()
