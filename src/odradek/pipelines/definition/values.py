"""Reads a mapping by its keys: `Values` has each value as its kind. `READERS` says how each kind is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.pipelines.definition.fields import Fields, text_of
from odradek.pipelines.definition.keys import Key, Kind
from odradek.pipelines.definition.model import Expectation
from odradek.pipelines.definition.nodes import MappingNode, value_places

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.pipelines.definition.nodes import Node
    from odradek.pipelines.definition.operations import NamedExpression, PythonReference
    from odradek.pipelines.definition.places import Place, Problems

Made = TypeVar("Made")


class Values(Fields):
    """The values of a mapping by key, each read as its kind; one that is missing or wrong is the default."""

    def __init__(self, node: Node, key: Key, what: str, problems: Problems) -> None:
        super().__init__(node, key.names, what, problems, key.former)
        is_mapping = isinstance(node, MappingNode)
        self.tree = node
        self.kind = self.chosen(key.one_of, hint=key.hint) if key.one_of and is_mapping else None
        self.is_whole = is_mapping and (self.kind is not None or not key.one_of)
        self._read: dict[str, Any] = {}
        for name in key.names if is_mapping else ():
            options = [each for each in key.keys if each.name == name]
            found = next((each for each in options if each.belongs_to(self.kind)), None)
            if found is not None:
                value = self._read[name] = READERS.get(found.kind, node_of)(self, found)
                self.is_whole = self.is_whole and not (found.required and not value)
            elif name in self and self.kind is not None:
                to = options[0].applies or " or ".join(owner for each in options for owner in each.owners)
                self.error(name, f"{name} of {what} applies to {to}, not to {self.kind}", options[0].hint)

    def __getitem__(self, name: str) -> Any:
        return self._read.get(name)

    @property
    def places(self) -> dict[str, Place]:
        return value_places(self.tree)

    def error(self, name: str, message: str, hint: str = "") -> None:
        """Reports a problem at the key."""
        self.problems.error(self.key_place(name), message, hint)

    def made(self, kind: Callable[..., Made], **more: Any) -> Made | None:
        """A value of a class whose fields are the keys; None if a required key is missing."""
        return kind(**self._read, **more) if self.is_whole else None


def node_of(values: Values, key: Key) -> Node | None:
    node = values.node(key.name)
    if node is None and key.required:
        values.missing(key.name, key.required)
    return node


def keys_of(values: Values, key: Key) -> Values | None:
    node = node_of(values, key)
    return None if node is None else Values(node, key, f"{key.name} of {values.what}", values.problems)


def text_value(values: Values, key: Key) -> Any:
    text = values.text(key.name, required=key.required, loose=key.kind is Kind.SQL)
    return key.default if text is None else text


def import_of(values: Values, key: Key) -> PythonReference | None:
    return values.reference(key.name) if key.required or key.name in values else None


def input_of(values: Values, key: Key) -> str | None:
    names = values.words(key.name, required=key.required)
    if len(names) > 1:
        hint = "join or combine them in a SQL step"
        values.problems.error(values.place_of(key.name), f"{values.what} has several inputs, and takes one", hint)
    return names[0] if names else None


def word_of(values: Values, key: Key) -> Any:
    if key.name not in values and key.required:
        values.missing(key.name, key.required)
    return values.choice(key.name, key.words, key.default, key.hint)


def length_of(values: Values, key: Key) -> Any:
    node = values.node(key.name)
    word = next((each for each in key.words if node is not None and text_of(node) == each), None)
    if word is not None:
        return word
    length = values.duration(key.name, required=key.required)
    if key.kind is Kind.PERIOD and length is not None and length.milliseconds <= 0:
        values.wrong(key.name, "longer than 0", key.hint)
    return length


def expressions_of(values: Values, key: Key) -> tuple[NamedExpression, ...]:
    found = values.expressions(key.name)
    if key.required and not found and isinstance(values.node(key.name), MappingNode):
        place = values.place_of(key.name)
        values.problems.error(place, f"{key.name} of {values.what} is empty", key.required)
    return found


def expectations_of(values: Values, key: Key) -> tuple[Expectation, ...]:
    node = values.node(key.name)
    if node is not None and not isinstance(node, MappingNode):
        values.wrong(key.name, "a mapping of names", key.hint)
    found = []
    for name, value in node.entries if isinstance(node, MappingNode) else ():
        short = text_of(value)  # `name: condition` alone warns
        if short is not None:
            found.append(Expectation(name.text, short, place=name.place, check_place=value.place))
            continue
        inner = Values(value, key, f"expectation '{name.text}' of {values.what}", values.problems)
        made = inner.made(Expectation, name=name.text, place=name.place, check_place=inner.place_of("check"))
        found += [] if made is None else [made]
    return tuple(found)


READERS: dict[Kind, Callable[[Values, Key], Any]] = {
    **dict.fromkeys((Kind.TEXT, Kind.PATH, Kind.URL, Kind.COLUMN, Kind.SQL), text_value),
    **dict.fromkeys((Kind.DURATION, Kind.PERIOD), length_of),
    Kind.TOPIC: lambda values, key: values.topic(key.name),
    Kind.TOPICS: lambda values, key: values.topics(key.name),
    Kind.NAMES: lambda values, key: values.words(key.name, required=key.required),
    Kind.INPUT: input_of,
    Kind.WORD: word_of,
    Kind.FLAG: lambda values, key: values.flag(key.name, key.default),
    Kind.COUNT: lambda values, key: values.count(key.name),
    Kind.EXPRESSIONS: expressions_of,
    Kind.EXPECTATIONS: expectations_of,
    Kind.SETTINGS: lambda values, key: values.settings(key.name),
    Kind.IMPORT: import_of,
    Kind.KEYS: keys_of,
}
