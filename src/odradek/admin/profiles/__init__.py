"""Which cluster is meant."""
