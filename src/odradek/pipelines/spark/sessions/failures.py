"""Failures of pipelines: short messages for errors of Spark and of user code, and whether a retry may succeed."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from odradek.pipelines.definition.secrets import without_url_passwords
from odradek.pipelines.operating.backoff import TAKEN_OVER, Retry

if TYPE_CHECKING:
    from collections.abc import Iterator


CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
TERMINATED = re.compile(r"terminated with exception:\s*", re.DOTALL)
JAVA_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error):\s*")
TRACEBACK = "Traceback (most recent call last)"
LIBRARIES = re.compile(
    r"[/\\](?:site-packages|pyspark\.zip|odradek[/\\]pipelines|lib[/\\]python3[^/\\]*)[/\\]|^<frozen "
)
AWAITED = "Exception thrown in awaitResult"  # Spark's words for a failure of another thread, which is the cause
UNREADABLE = re.compile(r"fetching the next record from (\S+)-(\d+)\. .*")  # of Kafka's Java client
LONGEST = 400
# Parts of messages, for errors whose type is lost on the way through Spark.
STOPS = "which stops the pipeline"  # of an expectation that a row does not meet
NEVER_MESSAGES = (STOPS, TAKEN_OVER, "STATE_STORE_KEY_SCHEMA", "STATE_STORE_VALUE_SCHEMA", "STATE_SCHEMA")
LIKELY_MESSAGES = ("TimeoutException", "DisconnectException", "NotLeaderOrFollower", "No space left on device")
SPARK_ERRORS = (PySparkException, Py4JJavaError)  # the second one of a job whose rows are collected


class PipelineError(Exception):
    """A failure with a message for the user; it starts with the place in the definition if there is one.

    `retry` is NEVER if a retry cannot succeed until the definition, the data or what is installed changes, and LIKELY
    if an external system is unavailable or full.
    """

    retry = Retry.PERHAPS


class SparkProcessEnded(PipelineError):
    """Spark's JVM has ended."""

    retry = Retry.LIKELY


def retry_of(error: BaseException) -> Retry:
    """Whether a retry may succeed, by the error and those that caused it."""
    found = {retry_of_one(each) for each in causes(error)}
    return next((each for each in (Retry.NEVER, Retry.LIKELY) if each in found), Retry.PERHAPS)


def retry_of_one(error: BaseException) -> Retry:
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415 - workers may lack it

    if isinstance(error, AnalysisException | ParseException) or any(each in str(error) for each in NEVER_MESSAGES):
        return Retry.NEVER
    if isinstance(error, PipelineError) and error.retry is not Retry.PERHAPS:
        return error.retry
    is_likely = isinstance(error, OperationalError | OSError) or any(each in str(error) for each in LIKELY_MESSAGES)
    return Retry.LIKELY if is_likely else Retry.PERHAPS


def causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def plain_message(error: BaseException) -> str:
    """The first error message, without Spark's error classes, plans and stack traces."""
    said = error.getMessage() if isinstance(error, PySparkException) else None  # None for a query that has ended
    text = said or str(error) or type(error).__name__
    if is_from_java(error):
        text = str(error.java_exception.toString())  # type: ignore[attr-defined]  # an error of Java, as checked
    if isinstance(error, PySparkException) and (error.getCondition() or "").startswith("FAILED_JDBC"):
        text = f"{plain_text(text)}: {cause_of(error)}"
    return plain_text(awaited_failure(error) or text if AWAITED in text else text)


def is_from_java(error: BaseException) -> bool:
    """Whether py4j raised the exception for one of a Java library below Spark."""
    return hasattr(error, "java_exception")


def awaited_failure(error: BaseException) -> str | None:
    """The failure that Spark awaited, of an error or of one of its causes; None if it is not known."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while thrown is not None and AWAITED in str(thrown.toString()):
        thrown = thrown.getCause()
    if thrown is not None:
        return str(thrown.toString())
    cause = getattr(error, "_cause", None)  # of a query that has ended, as an exception of PySpark
    return None if cause is None else plain_message(cause)


def cause_of(error: PySparkException) -> str:
    """The database's message, which Spark wraps in its own exceptions."""
    cause = getattr(error, "_origin", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
        if "SQLException" in cause.getClass().getName():
            break
    return "" if cause is None else str(cause.getMessage())


def message_with_location(error: BaseException) -> str:
    """The message of an exception of user code, and the line of that code that raised it."""
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not LIBRARIES.search(each.filename)]
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}, line {error.lineno})"
    return f"{words} ({frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name})" if frames else words


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
    text = without_url_passwords(" ".join(text.split()))
    text = UNREADABLE.sub(r"fetching the next record from \1-\2; `odradek consume \1 -p \2 -e` names its offset", text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def raised_in_python(text: str) -> str:
    """The last line of a Python worker's traceback, followed by the line of user code that raised it."""
    lines = text[text.index(TRACEBACK) :].splitlines()[1:]
    ends = [number for number, line in enumerate(lines) if line.strip() and not line.startswith((" ", "\t"))]
    last = ends[0] if ends else len(lines) - 1
    frames = [line.strip() for line in lines[:last] if line.startswith("  File ") and "/pyspark" not in line]
    where = f" ({frames[-1]})" if frames else ""
    return lines[last].strip() + where
