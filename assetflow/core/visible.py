"""Text from users as it may be shown: what controls a terminal or turns text round is written out, not obeyed."""

from __future__ import annotations

# What changes the direction of text, or is not seen at all.
_INVISIBLE = frozenset("\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def shown(text: object, *, keep: str = "") -> str:
    """Text with control characters made visible: an escape is shown as `\\x1b`.

    Parameters:
        keep: characters that stay as they are, such as line breaks.
    """
    return "".join(each if each in keep else _visible(each) for each in str(text))


def _visible(character: str) -> str:
    if character.isprintable() and character not in _INVISIBLE:
        return character
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
