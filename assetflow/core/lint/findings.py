"""What a lint finds, as data: a code, a place, a sentence and a mend. Contract 11.1."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import Literal

from assetflow.core.shapes import shape
from assetflow.core.wire.declarations import FlowDeclaration

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Check:
    """A check of the lint: how grave its findings are, and what they say in general."""

    level: Level
    title: str


CHECKS = {
    "AF001": Check("error", "A file or a flow in it cannot be imported"),
    "AF002": Check("error", "A deploy would refuse the flow"),
    "AF003": Check("note", "A deploy would note something about the flow"),
    "AF004": Check("warning", "Nobody updates an asset or alias that a flow is scheduled on"),
    "AF005": Check("warning", "Flows start each other in a circle"),
    "AF006": Check("error", "A condition can never hold"),
    "AF007": Check("warning", "A branch of an OR is useless"),
    "AF008": Check("warning", "Two flows update one asset"),
    "AF009": Check("warning", "An input is read that is neither declared nor scheduled on"),
    "AF010": Check("error", "The mappers of two assets never give the same key"),
    "AF011": Check("warning", "Flows read the keys of one asset in different formats"),
    "AF012": Check("note", "A cron is written without a time zone"),
    "AF013": Check("note", "An alias is updated, and nobody uses it"),
    "AF014": Check("note", "A wait for more updates has no end"),
}


@dataclass(frozen=True)
class SeenFlow:
    """A flow as the lint sees it.

    Attributes:
        file: the path of its file, from the working directory if it is below that.
        line: the line where its definition begins.
        function: what was decorated.
    """

    name: str
    file: str
    line: int
    declaration: FlowDeclaration
    function: FunctionType

    def finding(self, code: str, message: str, fix: str) -> Finding:
        """Return a finding about the flow."""
        return Finding(code, self.file, self.line, f"{self.name}: {message}", fix)

    def refused(self, why: str, fix: str) -> Finding:
        """Return the finding that a deploy refuses the flow."""
        return self.finding("AF002", f"a deploy refuses it: {why}", fix)


@shape
class Finding:
    """One finding: what is wrong in a line of a file, and what to do about it."""

    code: str
    file: str
    line: int
    message: str
    fix: str
    level: Level = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", CHECKS[self.code].level)
