"""Consumer groups over the wire."""
