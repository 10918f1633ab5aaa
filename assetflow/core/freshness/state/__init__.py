"""What chapter 8 remembers: where it is read from, and what a unit of work has to write."""
