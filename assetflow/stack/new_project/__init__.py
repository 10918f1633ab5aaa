"""The files that `assetflow init` writes: a project to begin with, and what runs it on other machines.

`project/` holds the flows, the test and the `prefect.yaml` of docs/start.md; `deploy/` leads to this repository's
`deployments/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

import yaml

from assetflow.errors import InvalidProject
from assetflow.stack.flow_files import FILE, read_document

Target = Literal["one-machine", "replicas"]

_TEMPLATES = Path(__file__).parent
# The module of the flows; the second one is for a project that has flows of its own.
_NAMES = ("flows", "shop")
# A link of this repository's pages leads nowhere from a project.
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def begin_project(folder: Path) -> Iterator[str]:
    """Write two flows, a test, `prefect.yaml` and `.gitignore` into a folder, and say what was done with each file.

    A file that is there already is not overwritten: `prefect.yaml` gets the two deployments, `.gitignore` the lines
    that it lacks, and the flows are written to `shop.py` if the project has a `flows.py` or a package `flows`.

    Raises:
        InvalidProject: `prefect.yaml` is not valid, or its list of deployments is not written as a list with dashes.
    """
    module = next((each for each in _NAMES if not _has(folder, each)), None)
    if module is None or _has_example(folder / FILE):
        yield "kept the flows: no example was written"
    else:
        deployments = _template("prefect.yaml").replace("flows.py:", f"{module}.py:")
        # Refuse a file that cannot take the deployments before anything is written.
        is_new = not (folder / FILE).exists()
        completed = deployments if is_new else with_deployments(folder / FILE, deployments)
        _write(folder / f"{module}.py", _template("flows.py.txt"))
        yield f"wrote {module}.py: two flows, of which one runs when the other has updated an asset"
        (folder / FILE).write_text(completed, encoding="utf-8")
        yield f"wrote {FILE}" if is_new else f"added two deployments to {FILE}"
        _write(folder / f"test_{module}.py", _template("test_flows.py.txt").replace("from flows", f"from {module}"))
        yield f"wrote test_{module}.py"
    yield from _complete_gitignore(folder / ".gitignore")


def write_deployment(folder: Path, target: Target) -> Iterator[str]:
    """Write the files that run assetflow elsewhere to `deployments/` in a folder, and name each that was written.

    Alert rules and a board come with both targets.

    Parameters:
        target: `one-machine` for systemd units, or `replicas` for several servers on Postgres and Redis, as a Compose
            file and as settings.
    """
    source = _TEMPLATES / "deploy"
    places = (each for wanted in (target, "monitoring") for each in (source / wanted).rglob("*"))
    for place in sorted(each for each in places if each.is_file()):
        name = Path("deployments", place.relative_to(source))
        if (folder / name).exists():
            yield f"kept {name}"
        else:
            _write(folder / name, _LINK.sub(r"\1", place.read_text(encoding="utf-8")))
            yield f"wrote {name}"


def with_deployments(place: Path, added: str) -> str:
    """Return a `prefect.yaml` with further deployments at the end of its list; every other line stays as it is.

    Parameters:
        place: the file.
        added: a file that has only deployments.

    Raises:
        InvalidProject: the file is not valid, or its list of deployments is not written as a list with dashes.
    """
    given = read_document(place)
    text = f"{place.read_text(encoding='utf-8').rstrip()}\n"
    if "deployments" not in given:
        return f"{text}\n{added}" if given else f"{text}{added}".lstrip()
    root = cast(yaml.MappingNode, yaml.compose(text, Loader=yaml.SafeLoader))
    listed = next(value for key, value in root.value if key.value == "deployments")
    if isinstance(listed, yaml.SequenceNode) and not listed.flow_style and listed.value:
        return _inserted(text.splitlines(), listed, added.splitlines()[1:])
    raise InvalidProject(
        "`deployments` is not a list of lines with dashes, so nothing can be added to it",
        where=FILE,
        fix="Write each deployment on lines of its own, beginning with `- name:`, then run this again",
    )


def _inserted(lines: list[str], listed: yaml.SequenceNode, entries: list[str]) -> str:
    end = listed.end_mark.line
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    indent = " " * listed.start_mark.column
    return "\n".join([*lines[:end], *(indent + each for each in entries), *lines[end:], ""])


def _complete_gitignore(place: Path) -> Iterator[str]:
    current = place.read_text(encoding="utf-8") if place.exists() else ""
    missing = [line for line in _template("gitignore.txt").splitlines() if line not in current.splitlines()]
    if missing:
        before = f"{current.rstrip()}\n" if current.strip() else ""
        place.write_text(before + "\n".join(missing) + "\n", encoding="utf-8")
        yield f"added {', '.join(missing)} to .gitignore" if before else "wrote .gitignore"


def _has(folder: Path, module: str) -> bool:
    return (folder / f"{module}.py").exists() or (folder / module).is_dir()


def _has_example(place: Path) -> bool:
    return place.exists() and any(f"{each}.py:produce" in place.read_text(encoding="utf-8") for each in _NAMES)


def _template(name: str) -> str:
    return (_TEMPLATES / "project" / name).read_text(encoding="utf-8")


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("x", encoding="utf-8") as file:
        file.write(text)
