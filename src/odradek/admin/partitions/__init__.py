"""Moving replicas over the wire."""
