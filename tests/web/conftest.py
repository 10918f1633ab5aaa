"""The pages behind a real server, on a ledger of each test's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
from jinja2 import Environment, FileSystemBytecodeCache

from assetflow.api.requests import Backend
from assetflow.api.security import Access
from assetflow.ledger import Ledger
from assetflow.web import create_site, pages
from tests.api.serving import serving
from tests.cli.shop import NOON
from tests.web.html import Page, read


class Site(httpx.Client):
    """A browser without scripts: it keeps cookies, and does not follow redirects by itself."""

    def page(self, address: str, **given: Any) -> Page:
        answer = self.get(address, **given)
        return read(answer.text)

    def submit(self, address: str, form_of: str, action: str, **fields: str) -> Any:
        """Fill in the form with this action on a page, and send it; its hidden fields go along.

        As every browser does, it sends a line break as CR LF.
        """
        filled = self.page(form_of).form(action) | fields
        return self.post(address, data={name: text.replace("\n", "\r\n") for name, text in filled.items()})


MakeSite = Callable[..., Site]


@pytest.fixture(scope="session", autouse=True)
def _compile_each_template_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the compiled templates for the next test's site: compiling them takes longer than most tests."""
    kept = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "Environment", partial(Environment, bytecode_cache=kept))
        yield


@pytest.fixture
def make_site(ledger: Ledger) -> Iterator[MakeSite]:
    """Makes sites on the ledger; the clock stands at noon unless another one is given."""
    with ExitStack() as opened:

        def make(access: Access | None = None, **backend: Any) -> Site:
            given: dict[str, Any] = {"now": lambda: NOON} | backend
            hosts = replace(access or Access(), hosts=frozenset({"127.0.0.1"}))
            url = opened.enter_context(serving(create_site(Backend(ledger, **given), hosts)))
            return opened.enter_context(Site(base_url=url, timeout=60, verify=False))

        yield make


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    return make_site()
