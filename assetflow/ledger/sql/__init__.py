"""The tables of the ledger, their rows, and statements that run on SQLite and on Postgres."""
