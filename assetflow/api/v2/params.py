"""The parameters that Airflow's lists share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from assetflow.api.requests import LARGEST, Text

Limit = Annotated[int, Query(ge=0, le=LARGEST, description="The largest number of items, at most 100.")]
Offset = Annotated[int, Query(ge=0, le=LARGEST)]
OrderBy = Annotated[list[Text], Query(description="Names to order by; `-` before a name means descending.")]
Pattern = Annotated[Text | None, Query(description="A part, in any case; `%` and `_` are wildcards, `|` separates.")]
Prefix = Annotated[Text | None, Query(description="A beginning, case-sensitive; `|` separates several.")]
AssetId = Annotated[int, Path(ge=0, le=LARGEST, examples=[1])]
DagId = Annotated[
    Text,
    Path(
        min_length=1,
        max_length=1000,
        description="`flow.deployment`, or the deployment's id.",
        examples=["report.nightly"],
    ),
]
