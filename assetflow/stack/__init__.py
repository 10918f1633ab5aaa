"""The embedded stack of `dev` and `demo`: Prefect, the evaluator with API and pages, and workers, each a process."""
