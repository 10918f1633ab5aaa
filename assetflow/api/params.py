"""Parameters that several paths share: a consumer's address, and an asset."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from assetflow.api.paging import Text

Flow = Annotated[Text, Path(max_length=500, description="The flow of `flow/deployment`.", examples=["report"])]
Deployment = Annotated[Text, Path(max_length=500, description="The deployment's name.", examples=["nightly"])]
NamedAsset = Annotated[
    Text, Query(min_length=1, description="The asset's URI, or its name.", examples=["s3://shop/orders"])
]
PathAsset = Annotated[
    Text, Path(min_length=1, description="The asset's URI, percent-encoded, or its name.", examples=["s3://lake/board"])
]
Preview = Annotated[bool, Query(description="Only say what this would lead to. Nothing is written.")]
