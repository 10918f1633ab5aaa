"""Every `assetflow …` command that the pages name exists, with the options that they give it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from assetflow.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("deployments/**/*.md")]
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
    assert {(page, command): wrong for page, command in named if (wrong := problem(command))} == {}
