"""The operations on a ledger, topic by topic: each is one transaction."""
