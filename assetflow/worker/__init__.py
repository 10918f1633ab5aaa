"""The warm worker: flow runs as forks of a process that has imported Prefect, instead of new processes."""

POOL_TYPE = "assetflow"
"""The type of its work pools."""
