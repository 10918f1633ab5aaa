"""Example 2: a schedule of one asset, in a list; a name does not make it another asset."""

from tests.examples.simulated import runs, updates

URI = "s3://asset-bucket/example.csv"


def test_a_name_does_not_make_it_another_asset() -> None:
    named = {"asset": {"uri": URI, "name": "bucket-1"}}
    assert runs({"plain": [URI], "named": [named]}, updates(URI)) == {"plain": [[URI]], "named": [[URI]]}
    assert runs({"plain": [URI], "named": [named]}, [{"event": named["asset"]}]) == {"plain": [[URI]], "named": [[URI]]}
