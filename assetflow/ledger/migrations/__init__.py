"""The migrations of the ledger, and the version of the tables that this program reads and writes."""

VERSION = "0001"
"""The newest migration. Versions have four digits, so that their order is that of texts."""
