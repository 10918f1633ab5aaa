"""The kinds of sources: brokers and file systems, each with a library of its own that an extra installs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from assetflow.errors import WatchingFailed


@contextmanager
def needing(package: str, extra: str, where: str) -> Generator[None]:
    """Turn a failure to import a package in the block into an error that names the extra which installs it.

    Raises:
        WatchingFailed: the package is missing.
    """
    try:
        yield
    except ImportError as error:
        raise WatchingFailed(
            f"{package} is not installed", where=where, fix=f'pip install "assetflow[{extra}]"'
        ) from error
