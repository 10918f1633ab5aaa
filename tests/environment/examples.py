"""The examples of `deployments/`, as texts: commands, settings, units."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

DEPLOYMENTS = Path(__file__).parents[2] / "deployments"


def commands(example: str) -> list[str]:
    """The blocks that a person types, in the order of the page."""
    page = (DEPLOYMENTS / example / "README.md").read_text()
    return [block.strip() for block in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)]


def env_file(place: str) -> dict[str, str]:
    """The settings of an environment file."""
    lines = (DEPLOYMENTS / place).read_text().splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def with_our_python(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which `python`, `prefect` and `assetflow` are those of the tests."""
    return {**environment, "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}
