"""What is refused: an exit status, a message that says what to do, nothing on standard output, no traceback."""

from pathlib import Path

import pytest

import assetflow.cli.version
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import HOURLY, ORDERS, ROLLED_UP, deploy, update

NO_ID = "00000000-0000-0000-0000-00000000000a"
BAD = [
    (("nonsense",), '[invalid-call] unknown command "nonsense"'),
    (("events", "ls", "--bogus"), "unknown option: --bogus do: `assetflow events ls --help` describes it"),
    (("events", "ls", "--limit", "0"), "Must be >= 1"),
    (("events", "ls", "--limit", "many"), "'many' is not a whole number"),
    (("events", "ls", "--asset", "ordrs"), "Similar names: orders"),
    (("lineage", "orders", "--down", "-1"), "Must be >= 0"),
    (("events", "show", "123"), "no event has the number 123"),
    (("events", "show", "orders"), "'orders' is neither the number"),
    (("database", "prune", "--older-than", "x"), "'x' is not a duration; write 90d"),
    (("database", "prune", "--older-than", "999999d"), "is too long"),
    (("events", "show", NO_ID), "there is no event"),
    (("events", "show"), "requires an argument"),
    (("decisions", "ls", "--waiting", "--undeliverable"), "cannot be given together"),
    (("decisions", "ls", "--consumer", "reprt"), "Similar names: report/shop"),
    (("queue", "ls", "nobody"), "no consumer is called 'nobody'"),
    (("queue", "ls", "twice"), "several consumers: twice/one, twice/two"),
    (("queue", "rm", "report", "--why", " "), "the reason is blank"),
    (("queue", "rm", "report", "--why", "x", "--key", "k"), "not partitioned"),
    (("queue", "rm", "daily", "--why", "x"), "--key"),
    (("queue", "rm", "report", "--why", "x", "--before", "noon"), "'noon' is not a time; write 2026-11-20"),
    (("queue", "rm", "report", "--why", "x", "--before", "9999-12-31T23:59:59-14:00"), "not in the years 1 to 9999"),
    (("events", "ls", "--limit", str(2**63)), "a number of 19 digits is too large"),
    (("queue", "replay", NO_ID), "there is no decision"),
    (("explain",), "one of a consumer, --run, --event and --asset"),
    (("explain", "--key", "k", "--run", NO_ID), "--key a consumer"),
    (("explain", "report", "--key", "k"), "not partitioned"),
    (("explain", "--run", NO_ID), "no decision started the flow run"),
    (("simulate", "nothing.json"), "do: Name a file with a scenario, in JSON or YAML"),
    (("explain", "caf\udce9"), "do: Write it in UTF-8, without NUL"),
    (("emit", ""), "[invalid-asset]"),
    (("emit", "s3:///x"), "do: Name the bucket, as in s3://bucket/key"),
    (("emit", "x", "--extra", '{"rows": 1,, }'), "in line 1, column 12"),
    (("emit", "x", "--extra", "[1]"), "not a JSON object"),
    (("emit", "x", "--extra", '{"a": NaN}'), "extra.a is not JSON: it is NaN"),
    (("emit", "x", "--extra", '{"a":' * 100_000), "nested more than 50 levels"),
    (("emit", "x", "--key", ""), "rule 2.5"),
    (("emit", "x", "--id", "1"), "'1' is not a UUID"),
    (("server", "start", "--port", "99999"), "Must be <= 65535"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: " ".join(value)[:40] if value else "")
def test_a_bad_call_is_refused(ledger: Ledger, call: Call, arguments: tuple[str, ...], message: str) -> None:
    deploy(ledger, "report/shop", ORDERS)
    deploy(ledger, "twice/one", HOURLY)
    deploy(ledger, "twice/two", HOURLY)
    deploy(ledger, "daily/shop", ROLLED_UP)
    update(ledger, ORDERS, 1)
    answer = call(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert message in " ".join(answer.err.split())
    assert answer.err.startswith("error ["), "there is one style of errors"
    assert "Traceback" not in answer.err
    assert ledger.reader.events.count() == 1


def test_without_a_ledger_the_error_says_how_to_get_one(call: Call, home: Path) -> None:
    answer = call("events", "ls")
    assert answer.code == 2
    assert answer.err.splitlines() == [
        "error [ledger-missing] there is no ledger",
        f"  where: {home / 'ledger.db'}",
        "  do:    `assetflow dev` or `assetflow evaluator start` makes one",
    ]


@pytest.mark.parametrize("command", ["events ls", "emit s3://shop/orders"])
def test_beside_a_stack_errors_say_so(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    stack = tmp_path / "a shop" / ".assetflow" / "dev"
    (stack / "deep").mkdir(parents=True)
    (stack / "env").touch()
    monkeypatch.chdir(stack / "deep")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ASSETFLOW_HOME")
    answer = call(*command.split())
    assert answer.err.splitlines()[-1] == f"  do:    To use the stack of `assetflow dev`: . '{stack / 'env'}'"


def test_a_mistake_of_ours_is_one_line_and_a_report(call: Call, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(_: str) -> str:
        raise ZeroDivisionError("\x1b[2Jboom\udce9")

    monkeypatch.setattr(assetflow.cli.version, "version_of", explode)
    answer = call("version")
    assert (answer.code, answer.out, answer.err.count("\n")) == (70, "", 1)
    assert r"ZeroDivisionError: \x1b[2Jboom\udce9" in answer.err
    (report,) = (home / "errors").iterdir()
    assert str(report) in answer.err
    assert "Traceback" in report.read_text()
    with pytest.raises(ZeroDivisionError):
        call("version", "--debug")


def test_ctrl_c_is_130(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(assetflow.cli.version, "version_of", interrupt)
    assert call("version").code == 130


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ASSETFLOW_HOME", "not/absolute", "ASSETFLOW_HOME"),
        (
            "ASSETFLOW_DATABASE_URL",
            "mysql://me:secret@host/database",
            "postgresql+psycopg://host:5432/database, with user:password@ before the host",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(
    call: Call, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    answer = call("events", "ls")
    assert (answer.code, words in answer.err, "secret" in answer.err) == (2, True, False)
