"""A user's files, as both type checkers see them; `test_checkers.py` runs them."""
