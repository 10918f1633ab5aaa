"""The lease, which lets one evaluator work at a time, and the evaluators that stand by for it."""
