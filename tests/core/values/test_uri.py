"""URIs and names beyond the conformance cases: what is refused, what is said about secrets, schemes of users."""

from urllib.parse import SplitResult

import pytest

from assetflow.core.values import uri as uri_module
from assetflow.core.values.uri import CredentialsCut, check_alias, check_name, normalize, register_scheme
from assetflow.errors import AssetflowWarning, InvalidAsset


@pytest.fixture
def own_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uri_module, "_RULES", dict(uri_module._RULES))


@pytest.mark.rule("1.4", "1.5")
@pytest.mark.parametrize(
    ("given", "rule", "word"),
    [
        ("", "1.5", "blank"),
        (None, "1.5", "NoneType"),
        ("a" * 1501, "1.5", "1501"),
        ("s3://b/é", "1.5", "%C3%A9"),
        ("Airflow://x", "1.5", "reserved"),
        ("s3://[b/k", "1.5", "%5B"),
        ("s3:k", "1.4", "bucket"),
        ("postgres:///db/s/t", "1.4", "host"),
        ("postgres://h", "1.4", "database/schema/table"),
        ("postgres://h/db//t", "1.4", "database/schema/table"),
        ("mysql://h:port/a/b", "1.4", "65535"),
    ],
)
def test_refused_with_rule_and_remedy(given: str, rule: str, word: str) -> None:
    with pytest.raises(InvalidAsset) as caught:
        normalize(given)
    assert caught.value.rule == rule
    assert word in str(caught.value)


@pytest.mark.rule("1.3")
@pytest.mark.parametrize(
    ("given", "bare"),
    [
        ("postgres://me:hunter2@host/db/s/t", "postgres://host:5432/db/s/t"),
        ("jdbc:postgresql://me:hunter2@host/db", "jdbc:postgresql://host/db"),
        ("dbt:://me:hunter2@", "dbt::"),
    ],
)
def test_a_password_is_cut_with_its_user_and_never_shown(given: str, bare: str) -> None:
    with pytest.warns(CredentialsCut) as caught:
        assert normalize(given) == bare
    text = str(caught[0].message)
    assert "hunter2" not in text
    assert "me" not in text.split("//")[1].split("@")[0]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("given", ["s3://me:hunter2@b/é", "s3://me:hunter2@[b/k", "airflow://me:hunter2@b/k"])
def test_errors_do_not_show_a_password(given: str) -> None:
    with pytest.raises(InvalidAsset) as caught:
        normalize(given)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["sig", "token", "password", "X-Amz-Signature", "access_token", "client-secret"])
def test_a_query_that_looks_like_a_secret_is_kept_with_a_warning(key: str) -> None:
    with pytest.warns(AssetflowWarning, match=key) as caught:
        assert normalize(f"s3://b/k?{key}=hunter2") == f"s3://b/k?{key}=hunter2"
    assert "hunter2" not in str(caught[0].message)
    assert not issubclass(caught[0].category, CredentialsCut)


@pytest.mark.rule("1.5")
def test_names() -> None:
    for name in ("orders", " orders ", "Bestellungen (täglich)", "日本", "airflow://x", "a" * 1500, "日" * 500):
        assert check_name(name) == name
    for name in ("", " ", "self", "context", "a" * 1501, "日" * 501, "\ud800", 5):
        with pytest.raises(InvalidAsset) as caught:
            check_name(name)  # pyright: ignore[reportArgumentType]
        assert caught.value.rule == "1.5"


@pytest.mark.rule("1.7")
def test_aliases_have_a_namespace_of_their_own() -> None:
    for name in ("x", "self", "Ä"):
        assert check_alias(name) == name
    for name in ("", "\n", "a" * 1501, "日" * 501, None):
        with pytest.raises(InvalidAsset) as caught:
            check_alias(name)  # pyright: ignore[reportArgumentType]
        assert caught.value.rule == "1.7"


@pytest.mark.rule("1.4")
@pytest.mark.usefixtures("own_schemes")
def test_users_register_schemes() -> None:
    def lower_host(parts: SplitResult) -> SplitResult:
        if not parts.netloc:
            raise ValueError("lake:// needs a zone, as in lake://raw/orders")
        return parts._replace(netloc=parts.netloc.lower())

    register_scheme("lake", lower_host, also=("dl",))
    assert normalize("DL://Raw/Orders/") == "lake://raw/Orders"
    with pytest.raises(InvalidAsset, match="needs a zone") as caught:
        normalize("lake:/x")
    assert caught.value.rule == "1.4"


@pytest.mark.parametrize("scheme", ["x-mine", "airflow", "Big", "", "a b"])
def test_some_schemes_cannot_have_a_rule(scheme: str) -> None:
    with pytest.raises(InvalidAsset):
        register_scheme(scheme, lambda parts: parts)
