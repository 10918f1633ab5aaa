"""The values that everything else speaks of: assets, events, conditions, schedules and consumers."""
