"""The evaluator as a process: its start, its lease, its loops, and the commands beside it."""
