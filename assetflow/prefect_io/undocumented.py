"""What assetflow needs of Prefect beyond its documented interface. If it is gone, only the feature concerned fails."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version

from assetflow.errors import UnsupportedPrefect


@contextmanager
def needed_for(feature: str) -> Generator[None]:
    """Turn the failure to import or find something of Prefect's inside the block into an error that names the feature.

    Parameters:
        feature: what does not work without it, such as "a data interval".

    Raises:
        UnsupportedPrefect: this version of Prefect does not have it.
    """
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise UnsupportedPrefect(
            f"{feature} does not work with Prefect {version('prefect')}, which has changed inside: {error}",
            fix="Install a version of Prefect that this assetflow supports (`pip install 'prefect>=3.9.1,<3.10'`), "
            "or a newer assetflow",
        ) from error
