"""What every decoder of this room raises when bytes do not say what they should, and nothing else."""


class MalformedMessage(ValueError):
    """Bytes from a peer or a file that do not follow the format."""
