"""The reads of a ledger, topic by topic."""
