"""Topics by name or pattern, and their settings."""
