"""Settings come from the environment as it is now, and say what is wrong with them."""

import os
from pathlib import Path

import pytest

from assetflow.errors import InvalidSettings
from assetflow.settings import get_settings


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("ASSETFLOW_")]:
        monkeypatch.delenv(name)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    settings = get_settings()
    assert settings.home == Path("/home/somebody/.assetflow")
    assert (settings.emit, settings.spark_master, settings.spark_remote) == ("always", "local[*]", "")


def test_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    first = get_settings()
    assert get_settings() is first
    monkeypatch.setenv("ASSETFLOW_EMIT", "never")
    monkeypatch.setenv("ASSETFLOW_SPARK_CONF", '{"spark.a": true, "spark.b": 2}')
    assert get_settings().emit == "never"
    assert get_settings().spark_conf == {"spark.a": "true", "spark.b": "2"}


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_EMIT", "")
    assert get_settings().emit == "always"


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("EMIT", "sometimes", "'always', 'deployed' or 'never'"),
        ("HOME", "data/assetflow", "an absolute path"),
        ("SPARK_MASTER", "sc://somewhere:15002", "ASSETFLOW_SPARK_REMOTE"),
        ("SPARK_MASTER", "locally", "local"),
        ("SPARK_REMOTE", "somewhere:15002", "sc://host:port"),
        ("SPARK_CONF", "spark.a=1", "JSON object"),
        ("SPARK_CONF", "[1]", "JSON object"),
        ("SETTLE", "soon", "Allowed: a valid number"),
        ("SETTLE", "inf", "a finite number"),
        ("RECORDING_TIMEOUT", "inf", "a finite number"),
    ],
)
def test_a_bad_value_names_the_variable_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(f"ASSETFLOW_{variable}", value)
    with pytest.raises(InvalidSettings, match=f"ASSETFLOW_{variable}") as caught:
        get_settings()
    assert value in str(caught.value)
    assert allowed in caught.value.fix
    assert "unable to parse" not in caught.value.fix


@pytest.mark.parametrize("variable", ["API_URL", "UI_URL"])
@pytest.mark.parametrize("value", ["assetflow.internal:4300", "ftp://assetflow.internal", "http://"])
def test_an_address_that_is_none_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(f"ASSETFLOW_{variable}", value)
    with pytest.raises(InvalidSettings, match=f"ASSETFLOW_{variable}") as caught:
        get_settings()
    assert value not in caught.value.message
    assert caught.value.fix == "Allowed: an address such as https://assetflow.internal:4300"
