"""Text of users is shown without what controls a terminal, turns text around or cannot be seen."""

from __future__ import annotations

import pytest

from assetflow.core.values.words import shown

INVISIBLE = "\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"


@pytest.mark.parametrize("character", INVISIBLE)
def test_what_cannot_be_seen_becomes_an_escape(character: str) -> None:
    assert shown(f"a{character}b") == f"a\\u{ord(character):04x}b"


def test_control_characters_become_escapes() -> None:
    assert shown("a\x1b[31mb\n\U000e0001") == "a\\x1b[31mb\\n\\U000e0001"
    assert shown("a\nb\x07", keep="\n") == "a\nb\\x07"


def test_other_text_stays() -> None:
    assert shown("Grüße, 数据 – s3://lake/ä") == "Grüße, 数据 – s3://lake/ä"
    assert shown(7) == "7"
