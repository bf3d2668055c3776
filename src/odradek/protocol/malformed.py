"""The only exception that the decoders of this package raise for invalid bytes."""


class MalformedMessage(ValueError):
    """Bytes from a peer or a file that do not follow the format."""
