"""What browsers are sent besides pages: compressed, kept for good, vendored unchanged, with a sign for each state."""

import re
from hashlib import sha256

from assetflow.ledger import Ledger
from assetflow.web.pages import FOLDER
from tests.cli.shop import ORDERS, update
from tests.web.conftest import Site

VENDOR = FOLDER / "vendor"


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
