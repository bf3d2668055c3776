"""Finds Java, which Spark needs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from odradek.pipelines.spark.failures import PipelineError

HOW_TO_GET_IT = (
    "install it (Debian and Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to the folder of a Java 17"
)


class JavaMissing(PipelineError):
    """There is no Java."""


def require_java() -> None:
    """Raises `JavaMissing` if Spark would not find a Java."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise JavaMissing(f"Spark needs Java 17, and JAVA_HOME ({home}) has none; {HOW_TO_GET_IT}")
    elif shutil.which("java") is None:
        raise JavaMissing(f"Spark needs Java 17, and there is no Java; {HOW_TO_GET_IT}")
