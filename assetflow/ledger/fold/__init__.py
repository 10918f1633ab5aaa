"""The state of the fold on the tables of the ledger: it is read from them, and its changes are written to them."""
