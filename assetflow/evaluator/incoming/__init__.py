"""Updates on their way from Prefect into the ledger."""
