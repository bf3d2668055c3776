"""Dead letters over the wire: reading them, and writing them back to the topics that they came from."""
