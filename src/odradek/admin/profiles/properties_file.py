"""Files of properties in Java's format: those of clients and of brokers."""

from __future__ import annotations

from pathlib import Path

from odradek.cli.framework.failure import Failure


def read_properties_file(path: str) -> dict[str, str]:
    """Failure if the file cannot be read or parsed."""
    from odradek.server.properties import PropertiesError, parse_properties

    try:
        text = Path(path).read_text(encoding="latin-1")
        return {name: each.value for name, each in parse_properties(text, path).items()}
    except OSError as problem:
        raise Failure(f"{path}: {problem.strerror or problem}") from None
    except PropertiesError as problem:
        raise Failure(str(problem)) from None
