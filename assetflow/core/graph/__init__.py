"""The picture of assets and flows: which part is shown, what is folded, and where each node stands."""
