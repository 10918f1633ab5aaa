"""The embedded stack of `dev` and `demo`: a Prefect server, the evaluator and a worker as processes."""
