"""What `make docs` has built leads nowhere that is not there, and needs nothing from the network."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.docs.pieces import ROOT
from tests.docs.public import MODULES, names

SITE = ROOT / ".assetflow" / "site"
FILES = sorted(SITE.rglob("*.html"))


class Page(HTMLParser):
    """The links, the parts that a browser loads, and the places of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if "href" in given and given.get("rel") not in ("canonical", "prev", "next"):
            (self.links if tag == "a" else self.loaded).add(given["href"])
        if "src" in given:
            self.loaded.add(given["src"])


@cache
def page(file: Path) -> Page:
    return Page(file.read_text(encoding="utf-8"))


def is_there(file: Path, link: str) -> bool:
    """Return True if a link of a page leads to a file of the site, and to a place in it if the link names one."""
    path, place = unquote(urlsplit(link).path), unquote(urlsplit(link).fragment)
    target = (file.parent / path).resolve() if path else file
    target = target / "index.html" if target.is_dir() else target
    return target.is_file() and (not place or target.suffix != ".html" or place in page(target).places)


def test_every_link_leads_somewhere() -> None:
    # The addresses of the page for missing pages are those of a server.
    found = [(file, link) for file in FILES if file.name != "404.html" for link in page(file).links | page(file).loaded]
    here = [(file, link) for file, link in found if not urlsplit(link).scheme]
    assert len(FILES) > 20
    assert [(file.parent.name, link) for file, link in here if not is_there(file, link)] == []


def test_what_the_code_makes_is_there() -> None:
    """The page of commands, that of the API's operations, and each public name with its own place."""
    assert {"assetflow-status", "assetflow-backfill-ls"} <= page(SITE / "commands" / "index.html").places
    assert {"assets", "airflow-assets"} <= page(SITE / "rest" / "index.html").places
    public = {f"{module}.{name}" for module in MODULES for name in names(module)}
    assert public - page(SITE / "python" / "index.html").places == set()


def test_a_page_loads_nothing_from_the_network() -> None:
    assert {link for file in FILES for link in page(file).loaded if urlsplit(link).netloc} == set()


def test_the_examples_of_docstrings_are_code() -> None:
    """Markdown takes `>>>` for a quotation within two others."""
    assert "<blockquote>\n<blockquote>" not in (SITE / "python" / "index.html").read_text(encoding="utf-8")
