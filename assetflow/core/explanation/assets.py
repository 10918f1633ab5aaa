"""The explanation of an asset: whether it is up to date, what was read for it, and where its data time comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.explain.status import ReadVersion, Status, StatusExplainer
from assetflow.core.freshness.asset_freshness import Unjudged, data_time_text
from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.demands import policy_inputs
from assetflow.core.freshness.moments import DataTime
from assetflow.core.freshness.state import Book


@dataclass(frozen=True)
class DataStep:
    """An asset, or a partition of one, on the path that a data time follows from (contract 8.12).

    Attributes:
        data_time: its data time as it was read.
        is_source: no flow makes it.
    """

    uri: str
    name: str
    partition_key: str | None
    data_time: DataTime
    is_source: bool

    @property
    def moment(self) -> datetime | None:
        """The data time; `None` if it is current."""
        return self.data_time if isinstance(self.data_time, datetime) else None

    def as_json(self) -> dict[str, object]:
        """Return the step as JSON, with its data time in ISO 8601, or "current"."""
        return {
            "uri": self.uri,
            "name": self.name,
            "partition_key": self.partition_key,
            "data_time": data_time_text(self.data_time),
            "source": self.is_source,
        }


@dataclass(frozen=True)
class AssetExplanation:
    """What an asset, or one of its partitions, was made from.

    Attributes:
        reads: the items that it is made from, at most 100, with the versions that were read and those of now.
        data_path: the path from the asset to the source that its data time follows from; empty for one partition, and
            if the asset was never made or nothing compares it.
    """

    status: Status
    reads: Sequence[ReadVersion]
    data_path: Sequence[DataStep]

    def as_json(self) -> dict[str, object]:
        """Return the fields of the status, and `reads` and `data_path`."""
        more = {
            "reads": [each.as_json() for each in self.reads],
            "data_path": [each.as_json() for each in self.data_path],
        }
        return self.status.as_json() | more


def explain_asset(
    book: Book,
    name_of: Callable[[str], str],
    uri: str,
    key: str | None,
    now: datetime,
    unjudged: Unjudged | None = None,
) -> AssetExplanation:
    """Explain an asset, or one of its partitions.

    Parameters:
        name_of: returns the readable name of a URI.
        now: the time from which "12 min ago" counts, UTC.
        unjudged: why states of policies are not judged up to now; `None` if they are.
    """
    explainer = StatusExplainer(book, name_of, now, unjudged)
    path = data_path(book, name_of, uri) if key is None else []
    return AssetExplanation(explainer.of(uri, key), explainer.reads(uri, key), path)


def data_path(book: Book, name_of: Callable[[str], str], uri: str) -> list[DataStep]:
    """Return the path from an asset to the source that its data time follows from; empty if it was never made."""
    if not book.concerns(uri):
        return []
    record = book.policies.find(uri)
    inputs = None if record is None else policy_inputs(book, record)
    return [
        DataStep(item.uri, name_of(item.uri), item.key, data_time, book.graph.maker(item.uri) is None)
        for item, data_time in DataTimes(book).way(uri, inputs)
    ]
