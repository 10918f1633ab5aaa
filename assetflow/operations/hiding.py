"""Hide assets that no flow declares or runs on, and show them again."""

from __future__ import annotations

from assetflow.core.values.words import some
from assetflow.errors import Conflict
from assetflow.ledger.read.reader import Reader
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_uri


def hide(at: Installation, asset: str, *, by: str) -> str:
    """Hide an asset from lists, graph and search until its next update or declaration. Return its URI.

    Raises:
        UnknownAsset: the ledger has no such asset.
        Conflict: a flow makes it, reads it or runs on it.
    """
    uri = find_uri(at.ledger.reader, asset)
    used = _uses(at.ledger.reader, uri)
    if used:
        raise Conflict(
            f"the asset {uri} cannot be hidden: {used}",
            where="asset",
            fix="Hide it when no deployed flow names it any more",
        )
    at.ledger.writer.assets.hide(uri, by=by, now=at.now())
    return uri


def unhide(at: Installation, asset: str) -> str:
    """Show an asset again, and return its URI. One that is not hidden stays as it is.

    Raises:
        UnknownAsset: the ledger has no such asset.
    """
    uri = find_uri(at.ledger.reader, asset)
    at.ledger.writer.assets.unhide(uri)
    return uri


def _uses(reader: Reader, uri: str) -> str:
    """Return who works with an asset in words, as in `it is made by a/b, it starts c/d`; "" if nobody does."""
    listed = reader.assets.get(uri=uri)
    if listed is None:
        return ""
    users = reader.assets.users_of([listed.record])[uri]
    ways = (("it is made by", users.producers), ("it is read by", users.readers), ("it starts", users.scheduled))
    return ", ".join(f"{way} {some(sorted(names))}" for way, names in ways if names)
