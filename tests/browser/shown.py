"""A browser in front of the pages."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, ViewportSize, expect

from assetflow.ledger import Ledger

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
# axe leaves it out unless it is asked for; WCAG 2.2 AA has it (2.5.8).
RULES = "{'target-size': {enabled: true}}"
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")


@dataclass
class Shown:
    """A browser in front of the pages, and what it complained about."""

    browser: Browser
    url: str
    ledger: Ledger
    complaints: list[str] = field(default_factory=list)

    def page(self, path: str, theme: Theme = "light", width: int = 1280, **options: Any) -> Page:
        """A new window on an address; whatever is written to its console is a complaint."""
        view: ViewportSize = {"width": width, "height": 860}
        page = self.browser.new_context(base_url=self.url, color_scheme=theme, viewport=view, **options).new_page()
        page.on("console", lambda message: self._complain(page.url, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"{page.url}: a dialog {dialog.message}"))
        page.goto(path)
        return page

    def _complain(self, url: str, text: str) -> None:
        if is_complaint(text):
            self.complaints.append(f"{url}: {text}")

    def drawn(self, path: str, *given: Any, **options: Any) -> Page:
        """The same with everything there that is loaded later."""
        page = self.page(path, *given, **options)
        expect(page.locator("#live-words")).to_have_text(re.compile("^Live"))
        if path.startswith(("/asset?", "/graph")):
            expect(page.locator("#graph")).to_have_attribute("data-nodes", re.compile(r"\d+"))
        return page


def is_complaint(text: str) -> bool:
    """Return whether a line of a page's console tells of something wrong.

    A keyboard that is faster than the page keeps its focus, which the browser reports. A browser also ends
    the requests of a page that the reader leaves, which htmx reports as `afterRequest` and `sendAbort`; a
    request that fails for another reason is reported as `sendError` or `responseError` too.
    """
    return not text.startswith(("Autofocus processing was blocked", "htmx:afterRequest", "htmx:sendAbort"))


def violations(page: Page, root: str = "document") -> list[tuple[str, list[str]]]:
    """Return what axe finds wrong with a page, or with an element of it, of any weight."""
    page.evaluate(AXE.read_text())
    found = page.evaluate(f"axe.run({root}, {{resultTypes: ['violations'], rules: {RULES}}})")
    return [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found["violations"]]
