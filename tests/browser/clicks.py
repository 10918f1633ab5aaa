"""Counts the clicks of somebody who wants something."""

import re

from playwright.sync_api import Page


class Clicks:
    """Counts the clicks on a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def on(self, name: str | re.Pattern[str], role: str = "link") -> None:
        self.page.get_by_role(role, name=name).first.click()  # pyright: ignore[reportArgumentType]
        self.count += 1
