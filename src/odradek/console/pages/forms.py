"""Bodies of forms: URL-encoded, of a bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    from starlette.requests import Request

LARGEST_BODY_BYTES = 2 * 1024 * 1024
LARGEST_FIELDS = 2_000


class FormError(ValueError):
    """A form or a parameter that cannot be used; the message says why."""


class Form:
    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        values = self._fields.get(name)
        return values[-1].strip() if values else default

    def raw(self, name: str) -> str | None:
        """The text as it was entered, with line breaks as LF; None without the field."""
        values = self._fields.get(name)
        return values[-1].replace("\r\n", "\n") if values else None

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._fields

    def number(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """FormError unless the field is a whole number within the bounds, or empty with a default."""
        return parse_number(self.text(name), name, least, most, default)


def parse_number(text: str, name: str, least: int, most: int, default: int | None = None) -> int:
    if not text and default is not None:
        return default
    digits = text.replace(",", "").removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19:
        raise FormError(f"{name}: {text[:60]!r} is not a whole number")
    number = int(text.replace(",", ""))
    if not least <= number <= most:
        raise FormError(f"{name}: {number:,} is not between {least:,} and {most:,}")
    return number


async def read_form(request: Request) -> Form:
    """FormError for a body that is too large, not URL-encoded or cut off. It is read once for each request."""
    known: Form | None = getattr(request.state, "form", None)
    if known is not None:
        return known
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_BODY_BYTES:
                raise FormError(f"the form is larger than {LARGEST_BODY_BYTES:,} bytes")
    except ClientDisconnect:  # or it took too long (`http_connections`)
        raise FormError("the form is not complete") from None
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=LARGEST_FIELDS, errors="strict")
    except ValueError:
        raise FormError("the form is not UTF-8, or has too many fields") from None
    form = Form(fields)
    request.state.form = form
    return form
