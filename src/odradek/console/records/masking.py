"""Rules that hide parts of records. Pure.

A rule is `key`, `header:NAME`, or a JSON path into the value, such as `$.card.number` or `$..password`. Records are
masked before anything else looks at them, so that pages, search and export agree.

What a path may miss is hidden: with a rule for values, a value that is no JSON object or list is hidden as a whole,
because nothing says where in it the field would be. So is an element of another type than the path expects
(`$.card.pin` hides the card if it is a text), and for `$..pin` each text with JSON that has the name inside. The reason
of a dead letter is reduced to its kind, because its details are an excerpt of the value.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from odradek.console.records.json_path import (
    Location,
    Path,
    PathError,
    Step,
    all_below,
    can_have,
    parse_path,
    take_step,
)
from odradek.pipelines.letters.letter import REASON_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.console.records.record import Record

HIDDEN = "•••"
HEADER_PREFIX = "header:"
NOT_JSON = object()


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Exactly one of the fields says what is hidden."""

    text: str
    hides_key: bool = False
    header: str | None = None
    path: Path | None = None


def parse_rule(text: str) -> MaskRule:
    """PathError for anything else than `key`, `header:NAME` and a JSON path."""
    if text == "key":
        return MaskRule(text, hides_key=True)
    if text.startswith(HEADER_PREFIX) and len(text) > len(HEADER_PREFIX):
        return MaskRule(text, header=text.removeprefix(HEADER_PREFIX))
    if text.startswith("$"):
        return MaskRule(text, path=parse_path(text))
    raise PathError(f"{text!r} is not a masking rule; write key, header:NAME or a JSON path such as $.card.number")


def mask(record: Record, rules: Iterable[MaskRule]) -> Record:
    """The record without what the rules hide."""
    rules = tuple(rules)
    if not rules:
        return record
    if any(rule.hides_key for rule in rules) and record.key is not None:
        record = replace(record, key=HIDDEN.encode())
    paths = [rule.path for rule in rules if rule.path is not None]
    if paths and record.headers:
        record = replace(record, headers=tuple((name, _mask_reason(name, value)) for name, value in record.headers))
    hidden = {rule.header.casefold() for rule in rules if rule.header is not None}
    if hidden:
        headers = tuple(
            (name, HIDDEN.encode() if name.casefold() in hidden else value) for name, value in record.headers
        )
        record = replace(record, headers=headers)
    if paths and record.value is not None:
        record = replace(record, value=_mask_value(record.value, paths))
    return record


def _mask_reason(name: str, value: bytes | None) -> bytes | None:
    if name != REASON_HEADER or value is None:
        return value
    return value.partition(b":")[0].strip()


def _mask_value(value: bytes, paths: Iterable[Path]) -> bytes:
    document = parse_json(value)
    if document is NOT_JSON:
        return HIDDEN.encode()
    root = [document]
    if document is not None and not isinstance(document, dict | list):
        root = [HIDDEN]
    for path in paths:
        for found in _hidden_locations(root, path):
            found.container[found.key] = HIDDEN
    try:
        return write_json(root[0], separators=(",", ":")).encode()
    except RecursionError:
        return HIDDEN.encode()


def _hidden_locations(root: list[Any], path: Path) -> list[Location]:
    """Where the path leads to, and where it ends too early."""
    found = [Location(root, 0)]
    missed: list[Location] = []
    for step in path:
        if step.is_anywhere:
            below = all_below([each.value for each in found])
            missed += [each for each in (*found, *below) if _has_inside(each.value, step)]
        else:
            missed += [each for each in found if each.value is not None and not can_have(each.value, step)]
        found = take_step([each.value for each in found], step)
    return found + missed


def _has_inside(text: Any, step: Step) -> bool:
    """Whether a text is JSON with the name of the step at any depth, also in texts inside; or JSON that is damaged,
    such as by a cut."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    document = parse_json(text.encode(errors="surrogatepass"))
    if document is NOT_JSON:
        return '"' in text
    inner = [each.value for each in all_below([document])]
    return bool(take_step([document], step)) or any(_has_inside(each, step) for each in (document, *inner))


def parse_json(value: bytes) -> Any:
    """The document, or NOT_JSON."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return NOT_JSON


def write_json(document: Any, **settings: Any) -> str:
    """Text that UTF-8 can hold: a document may contain halves of surrogate pairs, which it cannot."""
    text = json.dumps(document, ensure_ascii=False, **settings)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(document, **settings)
    return text


def indent_json(document: Any, characters: int) -> str:
    """The first characters of the indented document. A small document can be huge when it is indented, so that no more
    is built than is returned."""
    for is_ascii in (False, True):
        pieces: list[str] = []
        left = characters
        for piece in json.JSONEncoder(ensure_ascii=is_ascii, indent=2).iterencode(document):
            pieces.append(piece[:left])
            left -= len(piece)
            if left <= 0:
                break
        text = "".join(pieces)
        try:
            text.encode()
        except UnicodeEncodeError:  # halves of surrogate pairs
            continue
        return text
    return ""  # unreachable: ASCII can be encoded
