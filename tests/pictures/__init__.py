"""The installation that the pictures of the docs show: a shop with forty assets, in which not everything is well."""
