"""Read scenarios and steps from files in JSON or YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import yaml

from assetflow.errors import InvalidScenario


class _PlainLoader(yaml.SafeLoader):
    """A YAML loader that reads a time as text, as it is in a JSON file."""


_PlainLoader.yaml_implicit_resolvers = {
    start: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for start, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_data(text: str, file_name: str) -> object:
    """Parse the text: as YAML if the file name ends with .yaml or .yml, else as JSON.

    Raises:
        InvalidScenario: the text is not valid YAML or JSON.
    """
    try:
        if Path(file_name).suffix in (".yaml", ".yml"):
            return cast("object", yaml.load(text, _PlainLoader))
        return cast("object", json.loads(text))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InvalidScenario(
            f"cannot be read: {error}", where=file_name, fix="Write JSON, or YAML in a file whose name ends with .yaml"
        ) from error


def read_text(file: Path) -> str:
    """Return the text of a file.

    Raises:
        InvalidScenario: the file does not exist, or is not text.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        fix = "Name a file with a scenario, in JSON or YAML"
        raise InvalidScenario(f"cannot be read: {error.strerror}", where=str(file), fix=fix) from error
    except UnicodeDecodeError as error:
        fix = "Save the file as text, in UTF-8"
        raise InvalidScenario(f"cannot be read: {error}", where=str(file), fix=fix) from error
