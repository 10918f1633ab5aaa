"""Example 15: an alias and an asset of the same name are two things; consumers of both run at the first update."""

import pytest

from tests.examples.simulated import runs, task

ALIAS, ASSET = {"alias": "example-alias"}, "s3://bucket/my-task"


@pytest.mark.rule("1.7")
def test_an_alias_and_an_asset_of_its_name_are_two_things() -> None:
    consumers = {"asset-consumer": ASSET, "asset-alias-consumer": ALIAS}
    through_alias = {"task": {"outlets": [ALIAS], "emit": [ALIAS | {"asset": ASSET}]}}
    assert runs(consumers, [task("example-alias")]) == {"asset-consumer": [], "asset-alias-consumer": []}
    assert runs(consumers, [through_alias]) == {"asset-consumer": [[ASSET]], "asset-alias-consumer": [[ASSET]]}
