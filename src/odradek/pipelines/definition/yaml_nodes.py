"""Reads YAML into nodes, with a place for every value.

Only `true` and `false` are booleans, so that `on:` and `no` are text; timestamps are text too. `substituting` replaces
variables in the nodes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, ScalarValue, shortened
from odradek.pipelines.definition.places import Place
from odradek.pipelines.definition.yaml_text import scalar_segments

if TYPE_CHECKING:
    from odradek.pipelines.definition.places import Problems

YAML_TAG = "tag:yaml.org,2002:"
KNOWN_TAGS = frozenset(YAML_TAG + name for name in ("str", "int", "float", "bool", "null", "seq", "map", "merge"))

INTEGER = re.compile(r"[-+]?[0-9]{1,40}\Z")
PREFIXED_INTEGER = re.compile(r"0(x[0-9a-fA-F]{1,40}|o[0-7]{1,40})\Z")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def read_text(file: str, problems: Problems) -> str | None:
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        problems.error(Place(file, 1, 1), f"the file cannot be read: {error.strerror}", "check the path")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        problems.error(Place(file, line, column), "the file is not UTF-8", "save it as UTF-8")
    return None


def read_raw_yaml(text: str, file: str, problems: Problems) -> Node | None:
    """The single document of a file; None if the file is empty or not YAML, with the errors added to the problems."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(file, before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1)
        problems.error(place, f"the character {error.character!r} is not allowed in YAML", "remove it")
        return None
    except yaml.MarkedYAMLError as error:
        add_yaml_error(error, text, file, problems)
        return None
    except RecursionError:
        problems.error(Place(file, 1, 1), "the YAML is nested too deeply", "remove levels")
        return None
    if root is None:
        return None
    return NodeReader(text, file, problems).read(root)


def add_yaml_error(error: yaml.MarkedYAMLError, text: str, file: str, problems: Problems) -> None:
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1, 1)
    lines = text.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    what = (error.problem or "it cannot be read").strip()
    if "\\t" in what or "\t" in line[: place.column]:
        problems.error(place, "YAML does not allow tabs for indentation", "indent with spaces")
        return
    context = f" ({error.context.strip()})" if error.context else ""
    hint = "check the indentation and the colons of this line and the one before"
    if "but found another document" in what:
        hint = "a file defines one pipeline; put each of the others into its own file"
    elif "${" in line:
        hint = "quote ${…} inside { } and [ ]"
    elif "mapping values are not allowed" in what:
        hint = "quote text that contains a colon, or write it as a block after `|`"
    problems.error(place, f"this is not YAML: {what}{context}", hint)


class NodeReader:
    """Converts PyYAML's nodes; an alias and its anchor become the same node object."""

    def __init__(self, text: str, file: str, problems: Problems) -> None:
        self._lines = text.split("\n")
        self._file = file
        self._problems = problems
        self._done: dict[int, Node] = {}
        self._in_progress: set[int] = set()

    def read(self, node: yaml.Node) -> Node:
        done = self._done.get(id(node))
        if done is not None:
            return done
        place = self._place(node)
        if id(node) in self._in_progress:
            self._problems.error(place, "the alias refers to a value that contains it", "write the value out")
            return Scalar(None, "", place)
        if node.tag not in KNOWN_TAGS:
            self._problems.error(place, f"the tag {node.tag} is not supported", "remove it")
        self._in_progress.add(id(node))
        if isinstance(node, yaml.MappingNode):
            read: Node = self._mapping(node, place)
        elif isinstance(node, yaml.SequenceNode):
            read = ListNode(tuple(self.read(item) for item in node.value), place)
        else:
            assert isinstance(node, yaml.ScalarNode)
            read = self._scalar(node, place)
        self._in_progress.discard(id(node))
        self._done[id(node)] = read
        return read

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._file, node.start_mark.line + 1, node.start_mark.column + 1)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> MappingNode:
        entries: dict[str, tuple[Scalar, Node]] = {}
        merged: dict[str, tuple[Scalar, Node]] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.error(self._place(key_node), "a key must be a scalar", "write `key: value`")
                continue
            key = Scalar(key_node.value, key_node.value, self._place(key_node))
            value = self.read(value_node)
            if key.text == "<<" and key_node.style is None:
                merged.update(self._merged(value))
            elif key.text in entries:
                line = entries[key.text][0].place.line
                message = f"duplicate key '{shortened(key.text)}', first in line {line}"
                self._problems.error(key.place, message, "keep one of the two")
            else:
                entries[key.text] = (key, value)
        return MappingNode(tuple({**merged, **entries}.values()), place)

    def _merged(self, value: Node) -> dict[str, tuple[Scalar, Node]]:
        found: dict[str, tuple[Scalar, Node]] = {}
        for each in reversed(value.items) if isinstance(value, ListNode) else (value,):
            if isinstance(each, MappingNode):
                found.update({key.text: (key, item) for key, item in each.entries})
            else:
                self._problems.error(each.place, "`<<` takes a mapping", "write `<<: *anchor-of-a-mapping`")
        return found

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Scalar:
        segments = scalar_segments(node, self._lines)
        is_plain = node.style is None and node.tag == YAML_TAG + "str"
        value: ScalarValue = resolve(node.value) if is_plain else node.value
        return Scalar(value, node.value, Place(place.file, place.line, place.column, segments), is_plain)


def resolve(text: str) -> ScalarValue:
    """The value of an unquoted scalar, by the rules of YAML 1.2's core schema."""
    if text in NOTHING:
        return None
    if text in TRUTH:
        return TRUTH[text]
    if INTEGER.match(text):
        return int(text)
    if PREFIXED_INTEGER.match(text):
        return int(text, 0)
    if FLOAT.match(text):
        return float(text)
    return text
