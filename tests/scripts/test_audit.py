"""`make audit`: what it fails on, and what it only tells."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import respx

SCRIPT = Path(__file__).parents[2] / "scripts" / "audit"


@pytest.fixture
def audit() -> ModuleType:
    loader = SourceFileLoader("audit", str(SCRIPT))
    spec = importlib.util.spec_from_loader("audit", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def package(name: str, *found: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": list(found)}


def flaw(number: str, *fixed: str, aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"id": number, "fix_versions": list(fixed), "aliases": list(aliases), "description": ""}


def test_only_what_can_be_mended_and_is_not_accepted_fails(audit: ModuleType) -> None:
    packages = [
        package("fine"),
        package("bad", flaw("PYSEC-1", "1.1", "2.0")),
        package("old", flaw("PYSEC-2")),
        package("known", flaw("PYSEC-3", "1.1", aliases=("CVE-3",))),
        {"name": "ours", "version": "1.0", "skip_reason": "not on PyPI"},
    ]
    bad, told = audit.findings(packages, {"CVE-3": "only on Windows"})
    assert bad == ["bad 1.0: PYSEC-1: mended in 1.1, 2.0"]
    assert told == [
        "old 1.0: PYSEC-2: no version mends it yet",
        "known 1.0: PYSEC-3: accepted: only on Windows",
        "ours: not looked at: not on PyPI",
    ]


def test_a_package_of_several_versions_is_asked_for_in_turn(audit: ModuleType) -> None:
    source = {"registry": "https://pypi.org/simple"}
    lock = {
        "package": [
            {"name": "numpy", "version": "1", "source": source},
            {"name": "numpy", "version": "2", "source": source},
            {"name": "rich", "version": "3", "source": source},
            {"name": "assetflow", "version": "0", "source": {"editable": "."}},
        ]
    }
    assert audit.requirements(lock) == ["numpy==1\nrich==3\n", "numpy==2\n"]


@respx.mock
def test_without_a_service_it_says_so_and_passes(audit: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    respx.get(url__startswith="https://pypi.org").respond(404)
    respx.get(url__startswith="https://api.osv.dev").mock(side_effect=httpx.ConnectError("no"))
    assert audit.main() == 0
    told = capsys.readouterr().out
    assert "pypi: not reachable (it answers 404)" in told
    assert "osv: not reachable (ConnectError)" in told
    assert "the dependencies were NOT checked" in told


@respx.mock
def test_a_vulnerability_fails(
    audit: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    respx.get(url__startswith="https://pypi.org").respond(200)
    monkeypatch.setattr(audit, "ask", lambda _service, _wanted: [package("bad", flaw("PYSEC-1", "1.1"))])
    assert audit.main() == 1
    assert "bad 1.0: PYSEC-1: mended in 1.1" in capsys.readouterr().out
