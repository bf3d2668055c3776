"""Structured logs on the standard library: an event and its fields, written as text or as JSON lines.

`get_logger(__name__).warning("connection closed", client=host)`. Standard `logging` is underneath, so that programs
that embed the broker can route the records; a richer package would cost more start-up time than the rest of the broker.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
from typing import Any, TextIO

_FIELDS = "odradek_fields"


class Logger:
    """Events with named fields. An exception as a field is written as its text, or its type if it has none."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, *, exc_info: BaseException | None = None, **fields: object) -> None:
        self._write(logging.ERROR, event, fields, exc_info)

    def failure(
        self,
        event: str,
        problem: Exception,
        *,
        expected: type[Exception] | tuple[type[Exception], ...],
        **fields: object,
    ) -> None:
        """A warning with the reason if the exception is of an expected kind, otherwise an error with its traceback."""
        if isinstance(problem, expected):
            self.warning(event, **fields, reason=problem)
        else:
            self.error(event, exc_info=problem, **fields)

    def _write(self, level: int, event: str, fields: dict[str, object], exc_info: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            texts = {name: _reason(value) if isinstance(value, Exception) else value for name, value in fields.items()}
            self._logger.log(level, event, exc_info=exc_info, extra={_FIELDS: texts})


def _reason(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


def get_logger(name: str) -> Logger:
    return Logger(logging.getLogger(name))


def _parts(record: logging.LogRecord) -> tuple[str, dict[str, object]]:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec="milliseconds"), getattr(record, _FIELDS, {})


class TextFormatter(logging.Formatter):
    """`time level event key=value …`, one line, values quoted where they need it."""

    def format(self, record: logging.LogRecord) -> str:
        moment, fields = _parts(record)
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in fields.items())
        line = f"{moment} {record.levelname:<7} {record.getMessage()}{pairs}"
        return line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        moment, fields = _parts(record)
        entry: dict[str, Any] = {
            "time": moment, "level": record.levelname.lower(), "event": record.getMessage(), "logger": record.name,
        }  # fmt: skip
        entry.update(fields)
        if record.exc_info is not None:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _quoted(value: object) -> str:
    text = str(value)
    return text if text and not any(c.isspace() or c in "\"'=" or not c.isprintable() for c in text) else repr(text)


def configure_logs(*, level: str = "info", style: str = "text", stream: TextIO | None = None) -> None:
    """Send the broker's events to a stream, by default standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    for name in ("odradek", "asyncio"):  # where the event loop logs exceptions that no code caught
        root = logging.getLogger(name)
        root.handlers = [handler]
        root.setLevel(level.upper())
        root.propagate = False
