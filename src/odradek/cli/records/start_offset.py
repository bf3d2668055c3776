"""The values of `consume --offset`: a number, `earliest`, `latest`, or `-N` for N records before the end."""

from __future__ import annotations

from typing import Any

import click

from odradek.admin.records.record_reader import Start
from odradek.cli.framework.parameter_types import quoted
from odradek.conventions.figures import INT64_MAX

NAMES = {
    "earliest": Start(from_beginning=True),
    "beginning": Start(from_beginning=True),
    "latest": Start(),
    "end": Start(),
}


class StartOffsetType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """Converts to a `Start`. The names and `-N` are those of kcat."""

    name = "offset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Start:
        if isinstance(value, Start):
            return value
        if value in NAMES:
            return NAMES[value]
        is_from_end = value.startswith("-")
        digits = value.removeprefix("-")
        if not digits.isascii() or not digits.isdecimal() or len(digits) > 40:
            self.fail(f"{quoted(value)} is no offset; write earliest, latest, a number, or -N", param, ctx)
        number = int(digits)
        if number > INT64_MAX:
            self.fail(f"{quoted(value)} is larger than any offset ({INT64_MAX})", param, ctx)
        return Start(last=number) if is_from_end else Start(offset=number)
