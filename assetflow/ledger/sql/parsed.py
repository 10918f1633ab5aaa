"""The options of consumers, parsed from the text in the tables once, because many queries read the same consumers."""

from __future__ import annotations

from threading import Lock

from assetflow.core.rules.state.consumers import weight_of_options
from assetflow.core.rules.state.kept import Kept
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import declaration_from_text

LIMIT = 32 << 20
"""How many bytes of parsed options to remember; see `Kept`."""

_lock = Lock()
_parsed = Kept[str, ConsumerOptions](LIMIT, weight_of_options)


def options_from_text(text: str) -> ConsumerOptions:
    """Return the options in the text of a declaration. Any thread may call it."""
    with _lock:
        options = _parsed.find(text)
    if options is None:
        options = declaration_from_text(text, where="ledger").options
        with _lock:
            _parsed.keep(text, options)
            _parsed.grew(len(text))
            _parsed.renew()
    return options
