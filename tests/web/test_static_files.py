"""What browsers are sent besides pages: compressed, kept for good, vendored unchanged, with a sign for each state."""

import re
from hashlib import sha256

from assetflow.ledger import Ledger
from assetflow.web.pages import FOLDER
from tests.cli.shop import ORDERS, update
from tests.web.conftest import Site

VENDOR = FOLDER / "vendor"


def test_what_a_page_names_is_kept_for_good_and_compressed(site: Site, ledger: Ledger) -> None:
    update(ledger, ORDERS, 0)
    page = site.page("/asset?asset=orders")
    named = [*(each["src"] for each in page.named("script")), *(each["href"] for each in page.named("link"))]
    assert len(named) > 8
    for address in named:
        answer = site.get(address)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable", address
        # A font is compressed in itself.
        if len(answer.content) > 1000 and ".woff2" not in address:
            assert answer.headers["content-encoding"] == "gzip", address
        plain = site.get(address, headers={"accept-encoding": "identity"})
        assert (plain.content, plain.headers.get("content-encoding")) == (answer.content, None)


def test_pages_are_compressed_and_streams_are_not(site: Site, ledger: Ledger) -> None:
    update(ledger, ORDERS, 0)
    for path in ("/assets", "/asset?asset=orders", "/nothing", "/api/openapi.json"):
        assert site.get(path).headers["content-encoding"] == "gzip", path
    with site.stream("GET", "/live") as answer:
        assert "content-encoding" not in answer.headers
        assert next(answer.iter_text()).startswith("retry:")


def test_vendored_files_are_what_the_readme_says() -> None:
    rows = re.findall(r"^\| `(\S+)` \|.* `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)
    assert {name for name, _ in rows} == {file.name for file in VENDOR.iterdir() if file.suffix in (".js", ".woff2")}
    for name, digest in rows:
        assert sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
        assert (VENDOR / f"{re.split('-latin|-ext|[.]', name)[0]}.LICENSE.txt").exists()
