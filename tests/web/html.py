"""A page as a test looks at it: its words, its links, its forms."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"area", "base", "br", "hr", "img", "input", "link", "meta", "path", "source"})


@dataclass
class Page:
    """What a page holds; `tags` are all elements with their attributes."""

    text: str = ""
    title: str = ""
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    hidden: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def links(self) -> list[str]:
        return [given["href"] for name, given in self.tags if name == "a"]

    def form(self, action: str) -> dict[str, str]:
        """Return the hidden fields of the form with this action, whose query does not count."""
        return self.hidden[action]

    def named(self, name: str) -> list[dict[str, str]]:
        """The elements of a name."""
        return [given for each, given in self.tags if each == name]


def read(text: str) -> Page:
    """The page in a text. Elements have to be closed in the order in which they were opened."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert not parser.open, f"not closed: {parser.open}"
    page = parser.page
    # An element in a sentence ends before the sign that follows it.
    page.text = re.sub(r" (?=[,.;:)](?: |$))", "", " ".join(page.text.split()))
    page.rows = [" ".join(row.split()) for row in page.rows]
    return page


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.open: list[str] = []
        self._action = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert len(given) == len(attrs), f"an attribute twice: {attrs}"
        self.page.tags.append((tag, given))
        if tag == "form":
            self._action = given.get("action", "").partition("?")[0]
            if given.get("method") != "post" and self._action in self.page.hidden:
                self._action += " without a method"
            self.page.hidden[self._action] = {}
        if tag == "input" and given.get("type") == "hidden":
            self.page.hidden[self._action][given["name"]] = given["value"]
        if tag == "tr":
            self.page.rows.append("")
        if tag not in VOID:
            self.open.append(tag)
        self._say(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self._say(" ")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "title":
            self.page.title += data
        else:
            self._say(data)

    def _say(self, words: str) -> None:
        self.page.text += words
        if "tr" in self.open:
            self.page.rows[-1] += words
