"""The log of tests, beside PySpark's."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _failed_query() -> None:
    """Leave what an error with a query's context leaves, without a query."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").propagate = False


@pytest.mark.spark
def test_a_query_that_failed_leaves_the_log_of_tests_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("assetflow").error("of ours")
    assert "ERROR" in caplog.text
    assert '"ts"' not in caplog.text
