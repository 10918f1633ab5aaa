"""What the pages name is there: commands and targets, names and files, and where their links lead."""

import re
import shlex
from importlib import import_module
from pathlib import Path

from assetflow.cli.app import app
from assetflow.prefect_io import names as of_prefect
from tests.docs.pieces import PAGES, ROOT

# A command may stand behind settings and programs that start it.
COMMAND = re.compile(r"^(?:[A-Z_]+=\S* |opentelemetry-instrument |\$ |\S*bin/(?=assetflow ))*assetflow ([a-z].*)")
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
SHELLS = ("", "sh", "bash", "shell", "console")


def commands(page: str) -> set[str]:
    """The commands of a page, in blocks and within lines, without the name of the program."""
    lines = [line for kind, block in BLOCK.findall(page) if kind in SHELLS for line in block.splitlines()]
    lines += [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", BLOCK.sub("", page))]
    found = {COMMAND.match(line) for line in lines}
    return {match[1] for match in found if match}


def problem(command: str) -> str:
    """Return what is wrong with a command; empty if it exists."""
    words = shlex.split(re.split(r" [|>#;&]|\s+#", command)[0].replace("…", ""), comments=True)
    chain, _, rest = app.parse_commands(words)
    asked = app
    for name in chain:
        asked = asked[name]
    if asked.default_command is None:
        return "" if not rest or rest[0].startswith("--help") else f"`assetflow {' '.join(chain)}` has no {rest[0]!r}"
    known = {name for argument in asked.assemble_argument_collection() for name in argument.names} | {
        "--help",
        "--debug",
    }
    unknown = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in known]
    return f"`assetflow {' '.join(chain)}` has no option {unknown[0]}" if unknown else ""


def test_the_commands_of_the_pages_exist() -> None:
    named = sorted({(page.name, command) for page in PAGES for command in commands(page.read_text())})
    assert len(named) > 50
    assert {(page, command): wrong for page, command in named if (wrong := problem(command))} == {}


NAME = re.compile(r"`@?(assetflow(?:\.\w+)+)(?:\([^`]*\))?`")
# Events, labels and tags in Prefect are called in the same way.
IN_PREFECT = {value for value in vars(of_prefect).values() if isinstance(value, str)} | {
    *of_prefect.FRESHNESS_EVENTS.values()
}
FILES = {path.name for path in ROOT.glob("deployments/**/*.*")}


def is_there(name: str) -> bool:
    """Return True if a name is a module, something in one, something in Prefect, or a file of the examples."""
    if name in IN_PREFECT or name in FILES:
        return True
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_a_name_leads_somewhere() -> None:
    found = {(page.name, name) for page in PAGES for name in NAME.findall(page.read_text(encoding="utf-8"))}
    assert len(found) > 30
    assert {(page, name) for page, name in found if not is_there(name)} == set()


CODE = re.compile(r"^```python.*?^```", re.M | re.S)
IMPORT = re.compile(r"^ *(from assetflow[\w.]* import (?:[\w, ]+|\([^)]+\)))", re.M)


def imports(page: Path) -> list[str]:
    return [line for block in CODE.findall(page.read_text(encoding="utf-8")) for line in IMPORT.findall(block)]


def test_pages_import_from_where_a_name_is() -> None:
    found = [(page.name, line) for page in PAGES for line in imports(page)]
    assert len(found) > 50
    assert [(page, line) for page, line in found if not works(line)] == []


def works(line: str) -> bool:
    """Return True if a line can be imported; an old place would be a DeprecationWarning, which is an error here."""
    try:
        exec(line, {})
    except (ImportError, DeprecationWarning):
        return False
    return True


PLACES = (ROOT, ROOT / "assetflow", ROOT / "tests")
FILE = re.compile(r"(?<![\w/.-])((?:\w+/)+\w+\.py)\b")


def files(page: Path) -> list[str]:
    """The files of this repository that the text of a page names; what stands in blocks is the reader's."""
    return FILE.findall(re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S))


def test_the_files_that_pages_name_are_there() -> None:
    named = [(page.name, file) for page in PAGES for file in files(page)]
    assert len(named) > 50
    assert [(page, file) for page, file in named if not any((place / file).exists() for place in PLACES)] == []


def test_the_links_of_the_pages_lead_somewhere() -> None:
    linked = [(page.name, *place) for page in PAGES for place in links(page)]
    assert len(linked) > 50
    assert [(page, place) for page, place, _ in linked if not place.exists()] == []
    assert [(page, title) for page, place, title in linked if title and title not in titles(place)] == []


def links(page: Path) -> list[tuple[Path, str]]:
    """Return the file and the title that each link of a page leads to, those to other sites left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    found = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    return [(page.parent / link if link else page, title) for link, _, title in found]


def titles(page: Path) -> set[str]:
    """The titles of a page, as GitHub writes them into addresses."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}
