"""A plain Prefect flow that runs when data got too old, and when it is fresh again: see prefect.yaml."""

from prefect import flow


@flow(log_prints=True)
def alert(words: str) -> None:
    """Say which data is too old, and why, or that it is fresh again."""
    print(words)
