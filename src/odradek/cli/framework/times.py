"""Points in time and durations as written on the command line: `2026-01-31T12:00`, `1767225600000`, `-1h`, `500ms`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from odradek.cli.framework.parameter_types import PairType, quoted
from odradek.conventions.figures import DURATION, parse_duration_ms, parse_size_bytes, parse_time_ms

F = TypeVar("F", bound=Callable[..., Any])


class TimeType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A point in time, in epoch milliseconds. With `is_written`, times before 1970 are refused."""

    name = "time"

    def __init__(self, *, is_written: bool = False) -> None:
        self.is_written = is_written

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            time_ms = parse_time_ms(value, int(time.time() * 1000))
        except ValueError:
            hint = "write 2026-01-31T12:00, epoch milliseconds, or -1h"
            self.fail(f"{quoted(value)} is not a time; {hint}", param, ctx)
        except OverflowError:
            self.fail(f"{quoted(value)} is outside of the range of timestamps", param, ctx)
        if self.is_written and time_ms < 0:
            self.fail(f"{quoted(value)} is before 1970; timestamps begin there", param, ctx)
        return time_ms


class SettingType(PairType):
    """`key=value` of a setting. Times and sizes may have units, as in `retention.ms=7d` and `segment.bytes=1GiB`. The
    broker refuses what is neither."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        key, text = super().convert(value, param, ctx)
        match = DURATION.fullmatch(text)
        if key.endswith(".ms") and match is not None and match[2]:
            return key, str(parse_duration_ms(text))
        size_bytes = parse_size_bytes(text) if key.endswith(".bytes") else None
        return key, text if size_bytes is None else str(size_bytes)


SETTING = SettingType()


class DurationType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A length of time, in milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration_ms(value)
        except ValueError:
            self.fail(f"{quoted(value)} is not a duration; write 500ms, 10s or 1h", param, ctx)
        except OverflowError:
            self.fail(f"{quoted(value)} is too long", param, ctx)


def duration_option(name: str, parameter: str, text: str, default: str | None = None) -> Callable[[F], F]:
    """An option for a length of time, passed to the command in milliseconds."""
    return click.option(
        name, parameter, type=DurationType(), metavar="DURATION", default=default, show_default=True, help=text
    )
