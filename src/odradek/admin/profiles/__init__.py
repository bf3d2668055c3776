"""Which cluster is meant: stored profiles, files of properties, and their translation."""
