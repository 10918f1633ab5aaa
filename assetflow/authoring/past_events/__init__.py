"""Read past events from inside a flow."""
