"""Which process runs which test (`make test`)."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# One process has a session of Spark, one the client of Airflow: the others need not.
TOGETHER = ("tests/spark/", "tests/api/v2/test_airflow_client.py")


class Groups(LoadScopeScheduling):
    """Tests go one by one to the next free process, but each group of tests to a single one."""

    def _split_scope(self, nodeid: str) -> str:
        # xdist's own groups need node ids that pytest 9.2 does not let it change.
        return next((group for group in TOGETHER if nodeid.startswith(group)), nodeid)
