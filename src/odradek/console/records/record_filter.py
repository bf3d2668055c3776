"""Which records a search finds: those whose key, value, header or JSON field compares with a text. Pure.

Filters see records after masking, so that a search cannot find out what is hidden.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.console.records.json_path import Path, PathError, locations, parse_path
from odradek.console.records.masking import NOT_JSON, indent_json, parse_json

if TYPE_CHECKING:
    from odradek.console.records.record import Record

FIELDS = ("any", "key", "value", "header", "json")
LARGEST_SHOWN = 200_000  # characters of a document
COMPARISONS = ("contains", "equals", "differs", "greater", "less", "exists")


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """`name` is that of a header, `path` a JSON path into the value. Text is compared without regard to case."""

    field: str = "any"
    comparison: str = "contains"
    text: str = ""
    name: str = ""
    path: Path = ()

    @property
    def is_active(self) -> bool:
        return bool(self.text) or (self.comparison == "exists" and self.field in ("header", "json"))

    def matches(self, record: Record) -> bool:
        if not self.is_active:
            return True
        values = self._values(record)
        if self.comparison == "differs":  # none of them is equal
            return bool(values) and all(self._holds(value) for value in values)
        return any(self._holds(value) for value in values)

    def _values(self, record: Record) -> list[Any]:
        if self.field == "key":
            return self._texts(record.key)
        if self.field == "value":
            return self._texts(record.value)
        if self.field == "header":
            found = [value for name, value in record.headers if not self.name or name == self.name]
            return [text for value in found for text in self._texts(value)]
        if self.field == "json":
            document = parse_json(record.value) if record.value is not None else NOT_JSON
            return [] if document is NOT_JSON else [found.value for found in locations(document, self.path)]
        found = [record.key, record.value, *(value for _name, value in record.headers)]
        return [text for value in found for text in self._texts(value)]

    def _texts(self, value: bytes | None) -> list[str]:
        """The text, and that of JSON as it is shown: with characters in place of their escapes (`\\u00fc`), and spaces
        after colons. Other JSON is not parsed: parsing takes longer than all other steps of a search."""
        if value is None:
            return [""]
        text = value.decode(errors="replace")
        if "\\" not in text and ": " not in self.text:
            return [text]
        document = parse_json(value)
        with contextlib.suppress(RecursionError):  # nested too deeply to be indented
            return [text] if document is NOT_JSON else [text, indent_json(document, LARGEST_SHOWN)]
        return [text]

    def _holds(self, value: Any) -> bool:
        if self.comparison == "exists":
            return True
        text = _as_text(value).lower()
        wanted = self.text.lower()
        if self.comparison == "contains":
            return wanted in text
        if self.comparison in ("greater", "less"):
            try:
                number, limit = float(text), float(wanted)
            except ValueError:
                return False
            return number > limit if self.comparison == "greater" else number < limit
        return (text == wanted) == (self.comparison == "equals")


def parse_filter(field: str, comparison: str, text: str, name: str) -> RecordFilter:
    """PathError for an invalid JSON path."""
    if field not in FIELDS or comparison not in COMPARISONS:
        raise PathError(f"there is no filter {field[:20]!r} {comparison[:20]!r}")
    path = parse_path(name or "$") if field == "json" else ()
    return RecordFilter(field, comparison, text, name, path)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""
