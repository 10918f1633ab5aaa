"""The README is true: its links lead somewhere, its commands and targets are there, its first piece is a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assetflow import AssetFlow
from assetflow.cli.app import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.M | re.S)
SHELL = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]
TEXT = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_a_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("name", sorted({line.split()[1] for line in SHELL if line.startswith("make ")}))
def test_a_make_target_is_there(name: str) -> None:
    assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.M)


def named_commands() -> set[str]:
    lines = [line for line in SHELL if line.startswith("assetflow ")]
    lines += re.findall(r"`(assetflow [^`]*)`", TEXT)
    return {line.split()[1] for line in lines}


@pytest.mark.parametrize("name", sorted(named_commands()))
def test_a_command_is_there(name: str) -> None:
    assert name in set(app)


def test_the_first_piece_is_a_program() -> None:
    first = next(block for kind, block in BLOCKS if kind == "python")
    names: dict[str, object] = {}
    exec(compile(first, "README.md", "exec"), names)
    report = names["report"]
    assert isinstance(report, AssetFlow)
    assert report.schedule.describe() == "s3://shop/orders AND s3://shop/customers"
