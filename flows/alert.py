"""A plain Prefect flow that runs when a run or a check failed, or when data is too old or fresh again: prefect.yaml."""

from prefect import flow


@flow(log_prints=True)
def alert(words: str) -> None:
    """Say what failed and why, which data is too old, or that it is fresh again."""
    print(words)
