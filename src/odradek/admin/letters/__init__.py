"""Dead letters over the wire."""
