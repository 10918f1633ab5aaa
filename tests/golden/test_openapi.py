from assetflow.api.app import create_app
from assetflow.api.requests import Backend
from assetflow.ledger import Ledger
from tests.golden import agrees


def test_the_openapi_document(sqlite_ledger: Ledger) -> None:
    agrees("openapi", create_app(Backend(sqlite_ledger)).openapi())
