"""Normalising twice changes nothing, whatever a URI is made of."""

import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assetflow.core.values.uri import normalize
from assetflow.errors import InvalidAsset

SCHEMES = ("", "s3:", "GS:", "file:", "postgresql:", "mariadb:", "http:", "x-own:", "dbt:", "c:", "airflow:")
PIECES = ("//", "/", "host", "Bucket", "user@", "user:secret@", ":@", ":80", ":", "db/s/t", "db/t", "a b", "%2F", "..")
ENDS = ("", "/", "?", "?b=2&a=1&a=", "?q=%20+&flag", "#part", "?x=[1]#y", " ", "\n", ";p")

texts = st.one_of(
    st.builds(
        lambda scheme, pieces, end: scheme + "".join(pieces) + end,
        st.sampled_from(SCHEMES),
        st.lists(st.sampled_from(PIECES), max_size=6),
        st.sampled_from(ENDS),
    ),
    st.text(st.characters(max_codepoint=127), max_size=40),
)


def normalized(uri: str) -> str | InvalidAsset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return normalize(uri)
        except InvalidAsset as error:
            return error


@pytest.mark.rule("1.3")
@given(texts)
@example("foo:////x")
@example("s3://u:secret@b//x/")
@example("x:/ ?")
def test_normalising_twice_changes_nothing(uri: str) -> None:
    once = normalized(uri)
    if isinstance(once, InvalidAsset):
        assert once.rule in ("1.4", "1.5")
        assert once.fix or once.__cause__
    else:
        assert normalized(once) == once


@given(texts)
@example("dbt:://user:secret@")
def test_no_password_survives(uri: str) -> None:
    shown = str(normalized(uri))
    if not uri.startswith(("x-", "//", "/", *PIECES[2:])) and "://" in shown:
        assert "secret@" not in shown.partition("://")[2].partition("/")[0]
