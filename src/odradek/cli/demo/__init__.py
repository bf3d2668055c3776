"""`odradek demo`."""
