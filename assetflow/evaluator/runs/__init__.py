"""The flow run of a decision: its launch, its note and its end."""
