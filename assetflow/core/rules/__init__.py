"""The rules of the contract: what an update changes, and when a consumer runs."""
