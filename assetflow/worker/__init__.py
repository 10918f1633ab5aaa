"""The warm worker: flow runs as forks of a process that has imported Prefect, instead of new processes."""
