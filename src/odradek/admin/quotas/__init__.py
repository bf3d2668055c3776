"""Client quotas over the wire."""
