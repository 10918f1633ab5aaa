"""Which process runs which test (`make test`)."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SPARK = "tests/spark/"


class OneSpark(LoadScopeScheduling):
    """Tests go one by one to the next free process, but those of Spark to one, which has a session for all of them."""

    def _split_scope(self, nodeid: str) -> str:
        # xdist's own groups need node ids that pytest 9.2 does not let it change.
        return SPARK if nodeid.startswith(SPARK) else nodeid
