"""How the flows of this repository are served or deployed; no logic of their own."""
