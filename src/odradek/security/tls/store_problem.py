"""The one error of key stores and trust stores."""


class StoreProblem(ValueError):
    """A store that cannot be used. The message names the property, and never a secret."""
