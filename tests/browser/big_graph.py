"""A large graph: 1,500 assets in seven layers, and 500 flows, most of them Eager."""

import random

from assetflow import Eager
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AssetAll
from assetflow.ledger import Ledger
from tests.browser.site import START
from tests.ledger.making import deploy_maker

LAYERS = ("raw", "staging", "clean", "core", "marts", "reports", "exports")
PER_LAYER = 215
FLOWS = 500


def make_big(ledger: Ledger, *, per_layer: int = PER_LAYER, flows: int = FLOWS) -> None:
    """Deploy flows, each of which makes three assets of a layer from three of the layer before."""
    chance = random.Random(22)
    layers = [
        [
            Asset(f"s3://big/{layer}/{number:04}", name=f"{layer}_{number:04}", group=layer)
            for number in range(per_layer)
        ]
        for layer in LAYERS
    ]
    mixed = [chance.sample(layer, per_layer) for layer in layers]
    hub, kept = layers[0][0], set[Asset]()
    for number in range(flows):
        layer = 1 + number % (len(LAYERS) - 1)
        first = number // 6 * 3 % per_layer
        before, made = mixed[layer - 1][first:][:3], layers[layer][first:][:3]
        inputs = [*before, hub] if number % 25 == 0 else before
        # Only one Eager flow may make an asset.
        schedule = Eager() if kept.isdisjoint(made) else AssetAll(*inputs)
        kept.update(made)
        deploy_maker(ledger, schedule, made, inputs, f"build-{LAYERS[layer]}/{number:03}", at=START)
