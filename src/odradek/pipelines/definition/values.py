"""Reads a mapping by its keys: `Values` has each value as its kind. `READERS` says how each kind is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.pipelines.definition.fields import Fields, text_of, topic_of
from odradek.pipelines.definition.keys import Key, Kind
from odradek.pipelines.definition.model import Expectation
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Scalar, describe, shortened, value_places
from odradek.pipelines.definition.operations import NamedExpression, PythonReference
from odradek.pipelines.definition.vocabulary import IMPORT_PATH

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import StrEnum

    from odradek.pipelines.definition.nodes import Node
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.definition.vocabulary import Duration

Made = TypeVar("Made")


class Values(Fields):
    """The values of a mapping by key, each read as its kind; one that is missing or wrong is the default."""

    def __init__(self, node: Node, key: Key, what: str, problems: Problems) -> None:
        super().__init__(node, key.names, what, problems)
        is_mapping = isinstance(node, MappingNode)
        self.tree = node
        self.kind = self.chosen(key.one_of, hint=key.hint) if key.one_of and is_mapping else None
        self.is_whole = is_mapping and (self.kind is not None or not key.one_of)
        self._read: dict[str, Any] = {}
        for name in key.names if is_mapping else ():
            options = [each for each in key.keys if each.name == name]
            found = next((each for each in options if each.belongs_to(self.kind)), None)
            if found is not None:
                self._read[name] = self._value_of(found)
                self.is_whole = self.is_whole and not (found.required and not self._read[name])
            elif name in self and self.kind is not None:
                to = options[0].applies or " or ".join(owner for each in options for owner in each.owners)
                self.error(name, f"{name} of {what} applies to {to}, not to {self.kind}", options[0].hint)

    def _value_of(self, key: Key) -> Any:
        node = self.node(key.name)
        if node is None and key.required:
            self.missing(key.name, key.required)
        found = None if node is None else READERS[key.kind](self, key, node) if key.kind in READERS else node
        return EMPTY.get(key.kind, key.default) if found is None else found

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


def keys_of(values: Values, key: Key, node: Node) -> Values:
    return Values(node, key, f"{key.name} of {values.what}", values.problems)


def import_of(values: Values, key: Key, node: Node) -> PythonReference | None:
    text = values.text(key.name)
    match = None if text is None else IMPORT_PATH.match(text)
    if text is not None and match is None:
        values.wrong(key.name, "an import path", "write package.module:name")
    return None if match is None else PythonReference(match[1], match[2], node.place)


def topics_of(values: Values, key: Key, node: Node) -> tuple[str, ...]:
    if not isinstance(node, ListNode) or not node.items:
        values.wrong(key.name, "a list of topics", f"write {key.name}: [one, another]")
        return ()
    what = f"{key.name} of {values.what}"
    are_topics = [topic_of(each, what, values.problems) is not None for each in node.items]
    return values.words(key.name) if all(are_topics) else ()


def input_of(values: Values, key: Key, node: Node) -> str | None:
    names = values.words(key.name, required=key.required)
    if len(names) > 1:
        hint = "join or combine them in a SQL step"
        values.problems.error(node.place, f"{values.what} has several inputs, and takes one", hint)
    return names[0] if names else None


def count_of(values: Values, key: Key, node: Node) -> int | None:
    if isinstance(node, Scalar) and type(node.value) is int and 0 < node.value < 2**63:
        return node.value
    values.wrong(key.name, "a positive integer")
    return None


def length_of(values: Values, key: Key, node: Node) -> StrEnum | Duration | None:
    word = next((each for each in key.words if text_of(node) == each), None)
    if word is not None:
        return word
    length = values.duration(key.name)
    if key.kind is Kind.PERIOD and length is not None and length.milliseconds <= 0:
        values.wrong(key.name, "longer than 0", key.hint)
    return length


def texts_of(values: Values, key: Key, node: Node, what: str) -> list[tuple[Scalar, str, Place]]:
    """The texts and numbers of a mapping by their names."""
    if not isinstance(node, MappingNode):
        values.wrong(key.name, f"a mapping of {what}")
        return []
    found = []
    for name, value in node.entries:
        text = text_of(value, loose=True)
        if text is None:
            message = f"{shortened(name.text)} in {key.name} must be text or a number, not {describe(value)}"
            values.problems.error(value.place, message)
        else:
            found.append((name, text, value.place))
    return found


def settings_of(values: Values, key: Key, node: Node) -> dict[str, str]:
    return {name.text: text for name, text, _ in texts_of(values, key, node, "settings")}


def expressions_of(values: Values, key: Key, node: Node) -> tuple[NamedExpression, ...]:
    if key.required and isinstance(node, MappingNode) and not node.entries:
        values.problems.error(node.place, f"{key.name} of {values.what} is empty", key.required)
    found = texts_of(values, key, node, "name: SQL expression")
    return tuple(NamedExpression(name.text, text, name.place, place) for name, text, place in found)


def expectations_of(values: Values, key: Key, node: Node) -> tuple[Expectation, ...]:
    if not isinstance(node, MappingNode):
        values.wrong(key.name, "a mapping of names", key.hint)
        return ()
    found = []
    for name, value in node.entries:
        short = text_of(value)  # `name: condition` alone warns
        if short is not None:
            found.append(Expectation(name.text, short, place=name.place, check_place=value.place))
            continue
        inner = Values(value, key, f"expectation '{name.text}' of {values.what}", values.problems)
        made = inner.made(Expectation, name=name.text, place=name.place, check_place=inner.place_of("check"))
        found += [] if made is None else [made]
    return tuple(found)


# A key whose kind has no reader is its node. A reader returns None for a wrong value.
READERS: dict[Kind, Callable[[Values, Key, Node], Any]] = {
    **dict.fromkeys(
        (Kind.TEXT, Kind.COLUMN, Kind.SQL, Kind.PATH, Kind.URL),
        lambda values, key, _: values.text(key.name, loose=key.kind is Kind.SQL),
    ),
    **dict.fromkeys((Kind.DURATION, Kind.PERIOD), length_of),
    Kind.TOPIC: lambda values, key, _: values.topic(key.name),
    Kind.TOPICS: topics_of,
    Kind.NAMES: lambda values, key, _: values.words(key.name, required=key.required),
    Kind.INPUT: input_of,
    Kind.WORD: lambda values, key, _: values.choice(key.name, key.words, key.default, key.hint),
    Kind.FLAG: lambda values, key, _: values.flag(key.name, key.default),
    Kind.COUNT: count_of,
    Kind.EXPRESSIONS: expressions_of,
    Kind.EXPECTATIONS: expectations_of,
    Kind.SETTINGS: settings_of,
    Kind.IMPORT: import_of,
    Kind.KEYS: keys_of,
}
# Values of missing keys whose default is not that of the reference.
EMPTY: dict[Kind, Any] = {
    **dict.fromkeys((Kind.NAMES, Kind.TOPICS, Kind.EXPRESSIONS, Kind.EXPECTATIONS), ()),
    Kind.SETTINGS: {},
    Kind.START: None,
}
