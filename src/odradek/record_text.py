"""Bytes of a record as JSON fields: the form that `odradek consume --format json` prints and the console exports."""

from __future__ import annotations

import base64


def text_fields(name: str, value: bytes | None) -> dict[str, str | None]:
    """`{"value": "text"}`, or base64 with `"value_encoding": "base64"` for bytes that are not UTF-8."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: base64.b64encode(value).decode(), f"{name}_encoding": "base64"}
