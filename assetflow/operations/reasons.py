"""Check the reasons that operators give, which receipts and decisions keep."""

from __future__ import annotations

from assetflow.errors import InvalidCall


def check_reason(why: str, *, rule: str) -> None:
    """Check that a reason is not blank.

    Raises:
        InvalidCall: it is; `where` is `why`.
    """
    if not why.strip():
        raise InvalidCall("the reason is blank", where="why", rule=rule, fix="Give a reason, which is kept")
