"""Templates of records: text and JSON with `{placeholders}`, compiled to one format string.

Placeholders are `id`, `number` (of the record), `time`, `time_ms`, `state`, `fault` and the signals. `{time}` is ISO
8601 with milliseconds, `{time:%Y-%m-%d}` any other format. A JSON text that is a single placeholder has the type of its
value.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from odradek.pipelines.definition.places import Place, Problems

PLACEHOLDER = re.compile(r"\{(\w+)(?::([^{}]+))?\}")
TIME, TIME_MS = "time", "time_ms"
NUMBERS = ("id", "number", TIME_MS)
TEXTS = ("state", "fault")


@dataclass(frozen=True, slots=True)
class Template:
    """A format string, and the names of its values. `times` are the formats of the times among them."""

    format: str
    names: tuple[str, ...]
    times: tuple[tuple[str, str], ...]
    has_text: bool
    is_json: bool

    def renderer(self) -> Callable[[dict[str, Any], float], str]:
        """A function that renders values, to which it adds the texts of the event time."""
        text_format, times = self.format, self.times
        if not self.names:
            constant = text_format.replace("%%", "%")
            return lambda _values, _time_s: constant
        several = itemgetter(*self.names) if len(self.names) > 1 else itemgetter(self.names[0], self.names[0])
        count, escapes = len(self.names), self.has_text and self.is_json

        def render(values: dict[str, Any], time_s: float) -> str:
            for name, pattern in times:
                values[name] = time_text(pattern, time_s)
            found = several(values)[:count]
            if escapes:
                found = tuple(json_text(each) if type(each) is str else each for each in found)
            text: str = text_format % found
            return text

        return render


def time_text(pattern: str, time_s: float) -> str:
    if pattern and "%f" not in pattern:
        return second_text(pattern, int(time_s // 1))
    moment = datetime.fromtimestamp(time_s, UTC)
    return moment.strftime(pattern) if pattern else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(1024)
def second_text(pattern: str, second: int) -> str:
    """The records of a second share their text."""
    return datetime.fromtimestamp(second, UTC).strftime(pattern)


@lru_cache(4096)
def json_text(text: str) -> str:
    """The text as it stands between the quotes of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class TemplateCompiler:
    """Compiles the templates of a simulation. `signals` maps names to whether their values are text."""

    def __init__(self, signals: Mapping[str, bool], problems: Problems) -> None:
        self._is_text = {**dict.fromkeys(NUMBERS, False), **dict.fromkeys(TEXTS, True), **signals}
        self._problems = problems

    def text(self, node: Scalar) -> Template:
        """The template of a text, such as a key."""
        return self._finished(self._text_parts(node, is_json=False), is_json=False)

    def json(self, node: Node) -> Template:
        return self._finished(self._json_parts(node), is_json=True)

    def _finished(self, parts: list[str | tuple[str, str]], *, is_json: bool) -> Template:
        names = [part for part in parts if isinstance(part, tuple)]
        times = {f"{TIME}:{pattern}": pattern for name, pattern in names if name == TIME}
        return Template(
            "".join("%s" if isinstance(part, tuple) else part.replace("%", "%%") for part in parts),
            tuple(f"{TIME}:{pattern}" if name == TIME else name for name, pattern in names),
            tuple(times.items()),
            any(self._is_text.get(name, False) for name, _pattern in names),
            is_json,
        )

    def _json_parts(self, node: Node) -> list[str | tuple[str, str]]:
        if isinstance(node, Scalar):
            if not isinstance(node.value, str):
                return [json.dumps(node.value)]
            parts = self._text_parts(node, is_json=True)
            if len(parts) == 1 and isinstance(parts[0], tuple):
                name = parts[0][0]
                if name != TIME and not self._is_text.get(name, False):
                    return parts
            return ['"', *parts, '"']
        inner: list[str | tuple[str, str]] = []
        if isinstance(node, ListNode):
            for item in node.items:
                inner += [*([","] if inner else []), *self._json_parts(item)]
            return ["[", *inner, "]"]
        for key, value in node.entries:
            inner += [f'{"," if inner else ""}"{json_text(key.text)}":', *self._json_parts(value)]
        return ["{", *inner, "}"]

    def _text_parts(self, node: Scalar, *, is_json: bool) -> list[str | tuple[str, str]]:
        parts: list[str | tuple[str, str]] = []
        end = 0
        for match in PLACEHOLDER.finditer(node.text):
            parts += [self._literal(node.text[end : match.start()], node.place, is_json=is_json)]
            name, pattern = match[1], match[2] or ""
            if name not in self._is_text and name != TIME:
                known = (TIME, *self._is_text)
                self._problems.error(node.place, f"there is no value '{name}'", suggestion(name, known, what="values"))
            elif pattern and name != TIME:
                self._problems.error(node.place, f"'{name}' takes no format", "only {time:…} has one")
            parts.append((name, json_text(pattern) if is_json else pattern))
            end = match.end()
        parts += [self._literal(node.text[end:], node.place, is_json=is_json)]
        return [part for part in parts if part != ""]

    def _literal(self, text: str, place: Place, *, is_json: bool) -> str:
        if "{" in text or "}" in text:
            self._problems.error(place, "a brace has no counterpart", "write {name}, such as {id} or {time}")
        return json_text(text) if is_json else text


def paths_of(node: Node, prefix: tuple[str, ...] = ()) -> AbstractSet[tuple[str, ...]]:
    """The paths of all fields of a record template."""
    found: set[tuple[str, ...]] = set()
    if isinstance(node, MappingNode):
        for key, value in node.entries:
            path = (*prefix, key.text)
            found |= {path, *paths_of(value, path)}
    return found
