"""Which process runs which test (`make test`, `make test-services`)."""

from xdist.scheduler import LoadScopeScheduling

# Their tests share one session of Spark: the other processes need not start a JVM.
ON_ONE_SESSION = (
    "tests/spark/test_docstrings.py",
    "tests/spark/test_partitions.py",
    "tests/spark/test_publish.py",
    "tests/spark/test_schemas.py",
    "tests/spark/test_session.py",
    "tests/spark/test_stopping.py",
    "tests/spark/test_task.py",
)


class Groups(LoadScopeScheduling):
    """The tests of a file go together to the next free process, and so do those on one session of Spark."""

    def _split_scope(self, nodeid: str) -> str:
        # xdist's own groups need node ids that pytest 9.2 does not let it change.
        file = nodeid.partition("::")[0]
        return "spark" if file in ON_ONE_SESSION else file
