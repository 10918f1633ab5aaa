"""Watchers: what brings updates from outside, as data, and the rules of chapter 10 of the contract."""
