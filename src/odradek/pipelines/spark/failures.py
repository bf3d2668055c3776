"""What Spark says when something goes wrong, in a sentence."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
TERMINATED = re.compile(r"terminated with exception:\s*", re.DOTALL)
JAVA_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error):\s*")
TRACEBACK = "Traceback (most recent call last)"
LONGEST = 400


class PipelineError(Exception):
    """What keeps a pipeline from running, told in a sentence; where a line of the definition is to blame, with it."""


class SparkGone(PipelineError):
    """Spark's own process has ended."""


def plain_message(error: BaseException) -> str:
    """The first thing that is wrong, without Spark's numbers, plans and stack traces."""
    said = error.getMessage() if isinstance(error, PySparkException) else None  # nothing, of a query that has ended
    return plain_text(said or str(error) or type(error).__name__)


def plain_text(text: str) -> str:
    text = TERMINATED.split(text, maxsplit=1)[-1]
    if TRACEBACK in text:
        text = raised_in_python(text)
    text = re.split(
        r"\n\s*(?:at |== |===|JVM stacktrace|'Project|'Filter|Traceback|Driver stacktrace)", text, maxsplit=1
    )[0]
    text = STATE.sub("", text)
    for _ in range(3):
        text = JAVA_CLASS.sub("", CONDITION.sub("", text.strip()))
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def raised_in_python(text: str) -> str:
    """The last line of a worker's traceback, and before it the place in the user's own code."""
    lines = text[text.index(TRACEBACK) :].splitlines()[1:]
    ends = [number for number, line in enumerate(lines) if line.strip() and not line.startswith((" ", "\t"))]
    last = ends[0] if ends else len(lines) - 1
    frames = [line.strip() for line in lines[:last] if line.startswith("  File ") and "/pyspark" not in line]
    where = f" ({frames[-1]})" if frames else ""
    return lines[last].strip() + where
