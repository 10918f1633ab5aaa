"""Show text from users safely: characters that control a terminal or reverse text become visible escapes."""

from __future__ import annotations


def shown(text: object, *, keep: str = "") -> str:
    """Return a text with its control characters as escapes, such as `\\x1b`.

    Parameters:
        text: the text, or an object whose `str` is shown.
        keep: characters that stay as they are, such as line breaks.
    """
    written = str(text)
    if written.isprintable():
        return written
    return "".join(each if each in keep else _visible(each) for each in written)


def _visible(character: str) -> str:
    # What changes the direction of text, or cannot be seen, is not printable to Python.
    if character.isprintable():
        return character
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
