"""`assetflow assets hide` and `assets unhide`."""

from __future__ import annotations

from assetflow.cli.output import print_json, show, text
from assetflow.cli.user import this_user
from assetflow.ledger import Ledger
from assetflow.operations import hiding
from assetflow.operations.installation import Installation


def hide(asset: str, /, *, json: bool = False) -> None:
    """Hide an asset that no flow declares or runs on, until its next update.

    Lists, graph and search leave it out. It is also shown while a flow declares it. Its events stay.

    Parameters
    ----------
    asset
        The asset: its URI or its name.
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger:
        uri = hiding.hide(Installation(ledger), asset, by=this_user())
    _tell(uri, hidden=True, json=json)


def unhide(asset: str, /, *, json: bool = False) -> None:
    """Show a hidden asset again.

    Parameters
    ----------
    asset
        The asset: its URI or its name.
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger:
        uri = hiding.unhide(Installation(ledger), asset)
    _tell(uri, hidden=False, json=json)


def _tell(uri: str, *, hidden: bool, json: bool) -> None:
    if json:
        print_json({"uri": uri, "hidden": hidden})
    else:
        show(text(f"{uri} is hidden until its next update." if hidden else f"{uri} is shown."))
