"""The log of long processes: lines for people, JSON for machines, each with the ids that it is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from assetflow.cli.processes import log_to_stderr
from assetflow.errors import InvalidSettings


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    ours = logging.getLogger("assetflow")
    before = ours.handlers, ours.level, ours.propagate
    yield
    ours.handlers, ours.propagate = before[0], before[2]
    ours.setLevel(before[1])


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr()
    logging.getLogger("assetflow.evaluator").info("started run %s", "x", extra={"decision": "d"})
    assert capsys.readouterr().err.endswith("  INFO     started run x\n")


@pytest.mark.parametrize("kind", ["text", "json"])
def test_names_that_reverse_or_control_text_are_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("ASSETFLOW_LOG_FORMAT", kind)
    log_to_stderr()
    logging.getLogger("assetflow.evaluator").info("deployed %s", "\u202eevil\u2066\u200b\x1b[2J")
    told = capsys.readouterr().err
    assert told.rstrip("\n").isprintable()
    assert "u202eevil" in told


def test_lines_for_machines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_LOG_FORMAT", "json")
    log_to_stderr()
    logger = logging.getLogger("assetflow.evaluator")
    logger.info("started run %s\nin two lines", "x", extra={"decision": "d", "recordings": ["r"]})
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("failed")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "INFO",
        "logger": "assetflow.evaluator",
        "message": "started run x\nin two lines",
        "decision": "d",
        "recordings": ["r"],
    }
    assert "ValueError: broken" in second["traceback"]


@pytest.mark.parametrize("kind", ["text", "json"])
def test_passwords_in_addresses_are_not_logged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("ASSETFLOW_LOG_FORMAT", kind)
    log_to_stderr()
    logger = logging.getLogger("assetflow.evaluator")
    try:
        raise ValueError("no answer from http://u:secretpw@host/api")
    except ValueError:
        logger.exception("asking http://u:secretpw@host/api failed")
    told = capsys.readouterr().err
    assert "secretpw" not in told
    assert "asking http://host/api failed" in told


def test_another_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_LOG_FORMAT", "xml")
    with pytest.raises(InvalidSettings, match="ASSETFLOW_LOG_FORMAT"):
        log_to_stderr()
