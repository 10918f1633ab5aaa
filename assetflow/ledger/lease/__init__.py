"""The lease, which lets one evaluator run at a time, and the evaluators that stand by for it."""
