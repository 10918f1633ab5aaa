"""The settings: one flat class, read from `ASSETFLOW_*` environment variables; and files that only their owner reads.

Read them only with `get_settings()`. It returns the same object for the same environment, and reads a changed
environment (in a test or a subprocess) again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from assetflow.errors import InvalidSettings

_PREFIX = "ASSETFLOW_"
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|yarn|k8s://.+")


class Settings(BaseSettings):
    """The settings of one process. An empty variable counts as not set."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, frozen=True, extra="ignore")

    home: Path = Field(default_factory=lambda: Path.home() / ".assetflow")
    """Where assetflow keeps its own files (ledger, Spark's local server): an absolute folder, `~` allowed."""

    database_url: str = ""
    """SQLAlchemy URL of the ledger; empty for SQLite in `home`."""

    emit: Literal["always", "deployed", "never"] = "always"
    """Which task runs record updates: all, only those of deployed flows, or none."""

    native_events: bool = False
    """True to tell Prefect of updates by tasks in its own asset events too (contract 2.10)."""

    settle: float = Field(default=2.0, ge=0, allow_inf_nan=False)
    """Seconds after an instant for which the evaluator waits for updates that became durable by then (contract 9.6)."""

    recording_timeout: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """Seconds for which a task tries to record its updates before the attempt fails."""

    listeners: Annotated[tuple[str, ...], NoDecode] = ()
    """Modules with listeners, separated by commas, which the evaluator imports when it starts."""

    api_url: str = ""
    """Address of assetflow's API, for tasks that cannot open the ledger."""

    ui_url: str = ""
    """Address of assetflow's pages, for links to them in Prefect."""

    api_key: str = Field(default="", repr=False)
    """Key for assetflow's API: the server's key, which may do everything, and the key that tasks send."""

    api_key_read: str = Field(default="", repr=False)
    """A second key of the server, which may only read."""

    api_key_emit: str = Field(default="", repr=False)
    """A third key of the server, which may only send updates."""

    api_proxies: str = "127.0.0.1,::1"
    """Addresses and networks, separated by commas, of proxies that the server trusts about the client and TLS."""

    api_hosts: str = ""
    """Names, separated by commas, under which the API may be called besides localhost and the address it listens on."""

    log_format: Literal["text", "json"] = "text"
    """Format of the log of long-running processes: lines of text, or a JSON object per line."""

    spark_master: str = "local[*]"
    """Master of the classic Spark session, or of Spark's own local Connect server (`spark_remote="local"`)."""

    spark_remote: str = ""
    """Empty for a classic session, `local` for Spark's own shared local Connect server, or `sc://host:port`."""

    spark_conf: Annotated[dict[str, str], NoDecode] = Field(default_factory=dict[str, str])
    """Spark configuration, a JSON object: `{"spark.driver.memory": "4g"}`."""

    @property
    def uses_api(self) -> bool:
        """True if there is no ledger on this machine, but the address of an API."""
        return self.has_no_ledger and bool(self.api_url)

    @property
    def has_no_ledger(self) -> bool:
        """True if `database_url` is not set and the file `home/ledger.db` does not exist."""
        return not self.database_url and not (self.home / "ledger.db").exists()

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        path = value.expanduser()
        if not path.is_absolute():
            raise ValueError("an absolute path such as /var/lib/assetflow or ~/.assetflow")
        return path

    @field_validator("api_url", "ui_url")
    @classmethod
    def _address(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^/\s]\S*", value):
            raise ValueError("an address such as https://assetflow.internal:4300")
        return value

    @field_validator("api_proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        named = [each.strip() for each in value.split(",") if each.strip()]
        try:
            for each in named:
                ip_network(each)
        except ValueError as error:
            raise ValueError("addresses and networks such as 10.0.0.7 or 10.0.0.0/8, separated by commas") from error
        return ",".join(named)

    @field_validator("listeners", mode="before")
    @classmethod
    def _modules(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value

    @field_validator("spark_master")
    @classmethod
    def _master(cls, value: str) -> str:
        if not _MASTER.fullmatch(value):
            raise ValueError(
                "local, local[N], local[*], local-cluster[N,cores,MB], spark://host:port, yarn or k8s://host:port "
                "(a Connect server, sc://, belongs in ASSETFLOW_SPARK_REMOTE)"
            )
        return value

    @field_validator("spark_remote")
    @classmethod
    def _remote(cls, value: str) -> str:
        if value and value != "local" and not re.fullmatch(r"sc://[^/\s]+(/.*)?", value):
            raise ValueError("empty (a classic session), local (Spark's own local Connect server) or sc://host:port")
        return value

    @field_validator("spark_conf", mode="before")
    @classmethod
    def _conf(cls, value: object) -> dict[str, str]:
        expected = 'a JSON object of Spark configuration such as {"spark.driver.memory": "4g"}'
        try:
            conf: object = json.loads(value) if isinstance(value, str) else value
        except json.JSONDecodeError as error:
            raise ValueError(expected) from error
        if not isinstance(conf, Mapping):
            raise ValueError(expected)
        return {str(key): spark_text(each) for key, each in cast("Mapping[Any, Any]", conf).items()}


def spark_text(value: object) -> str:
    """Return a configuration value as Spark writes it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def get_settings() -> Settings:
    """Return the settings from the current environment.

    Raises:
        InvalidSettings: a variable has a value that is not allowed; the error names the variable and what is allowed.
    """
    return _read(tuple(sorted((key, value) for key, value in os.environ.items() if _relevant(key))))


def _relevant(key: str) -> bool:
    return key.upper().startswith(_PREFIX) or key == "HOME"


@lru_cache(maxsize=8)
def _read(environment: tuple[tuple[str, str], ...]) -> Settings:  # noqa: ARG001 (the key of the cache)
    try:
        return Settings()
    except ValidationError as error:
        raise _invalid(error.errors()[0]) from error


def _invalid(detail: ErrorDetails) -> InvalidSettings:
    field = str(detail["loc"][0])
    allowed = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ").partition(", unable")[0]
    shown = "a value (not shown)" if "key" in field or "url" in field else repr(str(detail["input"]))
    return InvalidSettings(
        f"{_PREFIX}{field.upper()} is {shown}, which is not allowed",
        where="environment",
        fix=f"Allowed: {allowed}",
    )


# The ledger holds what users' data and secrets are made of: only their owner may read it.
_FOLDER = 0o700
_FILE = 0o600


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter. One that is there stays as its owner wants it.

    Raises:
        OSError: The folder cannot be made.
    """
    folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)


def make_private(file: Path) -> None:
    """Make an empty file that only its owner can read, or take the others' rights to one that is there.

    A file of another user stays as it is. The file is never opened: that would undo SQLite's locks in this process.

    Raises:
        OSError: The file cannot be made.
    """
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE))
    except FileExistsError:
        keep_private(file)


def keep_private(file: Path) -> None:
    """Take the others' rights to a file, if it is there and ours."""
    with suppress(OSError):
        found = file.stat()
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            file.chmod(found.st_mode & 0o700)
