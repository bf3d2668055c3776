"""Typed access to the keys of a mapping; invalid values are reported as problems and parsing continues."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, describe, shortened
from odradek.pipelines.definition.vocabulary import is_topic_name, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.definition.vocabulary import Duration

Word = TypeVar("Word", bound=StrEnum)


class Fields:
    """Typed access to a mapping with a fixed set of keys; unknown keys are reported at construction."""

    def __init__(self, node: Node, known: Sequence[str], what: str, problems: Problems) -> None:
        self.what = what
        self.problems = problems
        self.place = node.place
        self._values: dict[str, Node] = {}
        self._keys: dict[str, Scalar] = {}
        if not isinstance(node, MappingNode):
            problems.error(node.place, f"{what} must be a mapping, not {describe(node)}", f"keys: {', '.join(known)}")
            return
        for key, value in node.entries:
            if key.text not in known:
                hint = suggestion(key.text, known, what="known keys")
                if any(each in key.text for each in " ()"):  # the rest of a text that was cut at a comma
                    hint = "within {…} a comma ends a value: quote the text before it"
                problems.error(key.place, f"unknown key '{shortened(key.text)}' of {what}", hint)
                continue
            self._values[key.text] = value
            self._keys[key.text] = key

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def node(self, key: str) -> Node | None:
        return self._values.get(key)

    def place_of(self, key: str) -> Place:
        """The place of the value, or of the mapping if the key is missing."""
        value = self._values.get(key)
        return self.place if value is None else value.place

    def key_place(self, key: str) -> Place:
        found = self._keys.get(key)
        return self.place if found is None else found.place

    def wrong(self, key: str, wanted: str, hint: str = "") -> None:
        node = self._values[key]
        self.problems.error(node.place, f"{key} of {self.what} must be {wanted}, not {describe(node)}", hint)

    def missing(self, key: str, hint: str) -> None:
        self.problems.error(self.place, f"{self.what} has no {key}", hint)

    def chosen(self, keys: Sequence[str], *, hint: str = "") -> str | None:
        """The one key present of several; reports a problem if there is none or more than one."""
        present = [key for key in keys if key in self._values]
        if not present:
            self.problems.error(self.place, f"{self.what} has none of {', '.join(keys)}", hint or "add one of them")
            return None
        for extra in present[1:]:
            message = f"{self.what} has both {present[0]} and {extra}"
            self.problems.error(self._keys[extra].place, message, "keep one of the two")
        return present[0]

    def text(self, key: str, *, required: str = "", loose: bool = False) -> str | None:
        """Text; with `loose` also the spelling of a number or boolean. `required` is the hint if the key is missing."""
        node = self._values.get(key)
        if node is None:
            if required:
                self.missing(key, required)
            return None
        value = text_of(node, loose=loose)
        if value is None:
            quotes = isinstance(node, Scalar) and node.value is not None and not isinstance(node.value, str)
            self.wrong(key, "text", "quote it" if quotes else "")
        return value

    def flag(self, key: str, default: bool) -> bool:
        node = self._values.get(key)
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        if node is not None:
            self.wrong(key, "true or false")
        return default

    def choice(self, key: str, words: Iterable[Word], default: Word, hint: str = "") -> Word:
        """One of some words; `hint` is added for a word that is none of them."""
        text = self.text(key)
        if text is None:
            return default
        known = {str(each): each for each in words}
        if text not in known:
            message = f"{key} of {self.what} cannot be '{shortened(text)}'"
            known_words = suggestion(text, known, what="one of")
            self.problems.error(self.place_of(key), message, f"{known_words}; {hint}" if hint else known_words)
        return known.get(text, default)

    def topic(self, key: str) -> str | None:
        return topic_of(self._values.get(key), f"{key} of {self.what}", self.problems)

    def words(self, key: str, *, required: str = "") -> tuple[str, ...]:
        """A list of strings; a single string is a list of one."""
        node = self._values.get(key)
        if node is None:
            if required:
                self.missing(key, required)
            return ()
        found: list[str] = []
        what = f"{key} of {self.what}"
        for item in node.items if isinstance(node, ListNode) else (node,):
            value = text_of(item)
            if value is None:
                message = f"{what} must be a list of names, not {describe(item)}"
                self.problems.error(item.place, message, "write [one, another]")
            elif value in found:
                self.problems.error(item.place, f"{what} names '{shortened(value)}' twice", "keep one")
            else:
                found.append(value)
        if required and isinstance(node, ListNode) and not node.items:
            self.problems.error(node.place, f"{what} is empty", required)
        return tuple(found)

    def duration(self, key: str) -> Duration | None:
        text = self.text(key, loose=True)
        length = None if text is None else parse_duration(text)
        if text is not None and length is None:
            self.wrong(key, "a duration", "write a number and a unit: 100 ms, 30 s, 1 minute, 2 hours, 1 day")
        return length


def text_of(node: Node, *, loose: bool = False) -> str | None:
    """The text of a string; with `loose`, also of a number or boolean. None for other values."""
    if not isinstance(node, Scalar) or node.value is None:
        return None
    if isinstance(node.value, str):
        return node.value if node.value.strip() or loose else None
    return node.text if loose else None


def topic_of(node: Node | None, what: str, problems: Problems) -> str | None:
    if node is None:
        return None
    text = text_of(node)
    if text is None or not is_topic_name(text):
        hint = "use at most 249 letters, digits, dots, underscores and dashes"
        problems.error(node.place, f"{what} must be the name of a topic, not {describe(node)}", hint)
        return None
    return text
