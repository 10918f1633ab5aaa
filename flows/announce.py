"""A plain Prefect flow that an ordinary Prefect trigger starts; see its `triggers:` block in `prefect.yaml`."""

from prefect import flow


@flow(log_prints=True)
def announce() -> None:
    """Say that there is a new board."""
    print("The board was updated.")
