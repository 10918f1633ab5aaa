"""The settings that are read without Prefect are those that Prefect reads; in doubt, Prefect reads them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.prefect_io import connection

URL = "http://prefect.internal:4200/api"
PROFILES = f"""
active = "work"
[profiles.work]
PREFECT_API_URL = "{URL}"
PREFECT_API_KEY = "pnu_profile"
PREFECT_CLIENT_CUSTOM_HEADERS = '{{"X-Team": "data"}}'
[profiles.other]
PREFECT_API_URL = "http://elsewhere:4200/api"
"""
# Prints the address and the headers that are read without Prefect, and says whether Prefect reads the same.
READ = """
import sys
from assetflow.prefect_io import connection
plain = connection._plainly_set()
assert "prefect" not in sys.modules
print(plain and (plain.url, dict(plain.headers)), plain == connection._from_prefect())
"""


def read(home: Path, **environment: str) -> str:
    """What a process in the folder `home` prints; Prefect's own folder is in it."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("PREFECT_")}
    environment = {"PREFECT_HOME": str(home / "prefect")} | environment
    done = subprocess.run(
        [sys.executable, "-c", READ], env=kept | environment, cwd=home, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "prefect").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "headers"),
    [
        ({"PREFECT_API_URL": URL}, "{}"),
        (
            {"prefect_api_url": URL, "PREFECT_API_KEY": "pnu_1", "PREFECT_API_AUTH_STRING": "ann:secret"},
            "{'Authorization': 'Basic YW5uOnNlY3JldA=='}",
        ),
    ],
)
def test_the_environment_is_read_as_prefect_reads_it(home: Path, environment: dict[str, str], headers: str) -> None:
    assert read(home, **environment) == f"('{URL}', {headers}) True"


@pytest.mark.parametrize(
    ("environment", "url"), [({}, URL), ({"PREFECT_API_URL": "http://there:4200/api"}, "http://there:4200/api")]
)
def test_the_active_profile_is_read_as_prefect_reads_it(home: Path, environment: dict[str, str], url: str) -> None:
    (home / "prefect" / "profiles.toml").write_text(PROFILES)
    headers = "{'X-Team': 'data', 'Authorization': 'Bearer pnu_profile'}"
    assert read(home, **environment) == f"('{url}', {headers}) True"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("prefect.toml", '[api]\nurl = "http://x:4200/api"\n'),
        (".env", "PREFECT_API_KEY=pnu_2\n"),
        ("pyproject.toml", '[tool.prefect.api]\nkey = "pnu_2"\n'),
        ("prefect/profiles.toml", "not TOML"),
        ("prefect/profiles.toml", 'active = "gone"\n[profiles.work]\n'),
    ],
)
def test_prefect_reads_other_files(home: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: str) -> None:
    (home / file).write_text(content)
    monkeypatch.chdir(home)
    monkeypatch.setenv("PREFECT_HOME", str(home / "prefect"))
    monkeypatch.setenv("PREFECT_API_URL", URL)
    assert connection._plainly_set() is None
    (home / file).unlink()
    assert connection._plainly_set() is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PREFECT_API_URL", ""),
        ("PREFECT_API_KEY", ""),
        ("PREFECT_API_URL", "ftp://x"),
        ("PREFECT_API_REQUEST_TIMEOUT", "5"),
        ("PREFECT_API_TLS_INSECURE_SKIP_VERIFY", "true"),
        ("PREFECT_CLIENT_CUSTOM_HEADERS", "[1]"),
        ("PREFECT_CLIENT_CUSTOM_HEADERS", "{"),
        ("PREFECT_PROFILE", "other"),
        ("PREFECT_PROFILES_PATH", "/elsewhere"),
    ],
)
def test_prefect_reads_what_means_more(home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("PREFECT_HOME", str(home / "prefect"))
    monkeypatch.setenv("PREFECT_API_URL", URL)
    monkeypatch.setenv(name, value)
    assert connection._plainly_set() is None
