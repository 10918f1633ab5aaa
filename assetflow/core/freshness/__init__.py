"""Versions and freshness: what is out of date and why, and what has to run for it (contract chapter 8)."""
