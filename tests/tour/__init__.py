"""Ten tests to read first: each shows something that the README promises."""
