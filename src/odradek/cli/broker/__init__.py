"""`odradek broker`."""
