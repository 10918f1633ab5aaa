"""A plain Prefect flow that runs when the data of an asset got too old; see its `triggers:` block in `prefect.yaml`."""

from prefect import flow


@flow(log_prints=True)
def alert(words: str) -> None:
    """Say which data is too old, and why."""
    print(words)
