"""The evaluator: it records updates, and creates the runs of the decisions that follow."""
