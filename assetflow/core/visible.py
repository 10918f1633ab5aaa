"""Show text from users safely: characters that control a terminal or reverse text become visible escapes."""

from __future__ import annotations

# Characters that change the direction of text, or that cannot be seen.
_INVISIBLE = frozenset("\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def shown(text: object, *, keep: str = "") -> str:
    """Return a text with its control characters as escapes, such as `\\x1b`.

    Parameters:
        text: the text, or an object whose `str` is shown.
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
