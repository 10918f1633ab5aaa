"""The process that runs the watchers of all deployments and records what they find (contract chapter 10)."""
