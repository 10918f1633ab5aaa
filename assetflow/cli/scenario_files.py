"""Scenarios and steps from files, in JSON or YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import yaml

from assetflow.errors import InvalidScenario


class _PlainLoader(yaml.SafeLoader):
    """YAML as JSON means it: a time is a text, as it is in a JSON file."""


_PlainLoader.yaml_implicit_resolvers = {
    start: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for start, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_data(text: str, file_name: str) -> object:
    """The plain data of a text: YAML if the file's name says so, else JSON.

    Raises:
        InvalidScenario: the text is neither.
    """
    try:
        if Path(file_name).suffix in (".yaml", ".yml"):
            return cast("object", yaml.load(text, _PlainLoader))
        return cast("object", json.loads(text))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InvalidScenario(
            f"cannot be read: {error}", where=file_name, fix="Write JSON, or YAML in a file that ends with .yaml"
        ) from error


def read_text(file: Path) -> str:
    """The text of a file.

    Raises:
        InvalidScenario: there is no such file, or it is no text.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidScenario(f"cannot be read: {error}", where=str(file)) from error
