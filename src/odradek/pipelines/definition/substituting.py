"""Replaces variables in the values of a definition.

`${NAME}` is a parameter, otherwise a variable of the environment; `${file:PATH}` is the content of a file, a secret.
`:-default` before the brace stands for one that is not set or empty, and `$${NAME}` is a literal `${NAME}`. A parameter
that stands alone keeps its type. Within the value of a parameter, its own name means the environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.nearest import nearest
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, describe, shortened
from odradek.pipelines.definition.places import Place
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml, resolve
from odradek.pipelines.definition.yaml_text import VARIABLE, line_and_column, substitute, unclosed

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from odradek.pipelines.definition.places import Problems


def read_yaml(text: str, file: str, environment: Mapping[str, str], problems: Problems) -> Node | None:
    """The single document of a file with its variables replaced from the environment; None as for `read_raw_yaml`."""
    root = read_raw_yaml(text, file, problems)
    return None if root is None else Substitution({}, environment, problems).of(root)


class Substitution:
    """Replaces the variables of one definition; nodes that are shared stay shared."""

    def __init__(self, parameters: Mapping[str, Node], environment: Mapping[str, str], problems: Problems) -> None:
        self._parameters = parameters
        self._environment = environment
        self._problems = problems
        self._open: set[str] = set()  # parameters whose values are being replaced
        self._values: dict[str, Node] = {}
        self._done: dict[int, tuple[Node, Node]] = {}  # by id; the first node keeps its id in use

    def of(self, node: Node) -> Node:
        """The node with the variables below it replaced."""
        if id(node) in self._done:
            return self._done[id(node)][1]
        if isinstance(node, MappingNode):
            made: Node = MappingNode(tuple((key, self.of(value)) for key, value in node.entries), node.place)
        elif isinstance(node, ListNode):
            made = ListNode(tuple(self.of(item) for item in node.items), node.place)
        else:
            made = self._scalar(node)
        self._done[id(node)] = (node, made)
        return made

    def _scalar(self, scalar: Scalar) -> Node:
        if not isinstance(scalar.value, str) or "${" not in scalar.text:
            return scalar
        if (wrong := unclosed(scalar.text)) is not None:
            where = scalar.place.inside(*line_and_column(scalar.text, wrong.start()))
            hint = "write ${NAME} or ${NAME:-default}; a default has no variable in it"
            self._problems.error(where, f"'{shortened(wrong.group())}' has no closing brace", hint)
            return scalar
        alone = VARIABLE.fullmatch(scalar.text)
        name = None if alone is None else alone["name"]
        if name is not None and name in self._parameters and name not in self._open:
            found = self._parameter(name)
            if not isinstance(found, Scalar):
                return found
            if found.value not in {None, ""}:
                place = Place(scalar.place.file, scalar.place.line, scalar.place.column)
                return Scalar(found.value, found.text, place)
        is_secret = any(match["file"] is not None for match in VARIABLE.finditer(scalar.text))
        text, segments = substitute(scalar.text, scalar.place, self._text_of)
        place = Place(scalar.place.file, scalar.place.line, scalar.place.column, segments)
        return Scalar(resolve(text) if scalar.is_plain and not is_secret else text, text, place, scalar.is_plain)

    def _text_of(self, match: re.Match[str], place: Place) -> str:
        """The text for a variable; the variable itself if there is none, which is reported."""
        found = self._looked_up(match, place)
        if found is not None and (found or match["default"] is None):
            return found
        return match.group() if match["default"] is None else match["default"]

    def _looked_up(self, match: re.Match[str], place: Place) -> str | None:
        has_default = match["default"] is not None
        name = match["name"]
        if name is None:
            return self._secret(match["file"], place, has_default=has_default)
        if name in self._parameters and name not in self._open:
            found = self._parameter(name)
            if not isinstance(found, Scalar):
                message = f"the parameter '{name}' is {describe(found)} and cannot be a part of a text"
                self._problems.error(place, message, f"write ${{{name}}} alone")
                return ""
            if found.value is None and not has_default:
                hint = f"give it one: --set {name}=…, or a default: ${{{name}:-…}}"
                self._problems.error(place, f"the parameter '{name}' has no value", hint)
            return None if found.value is None else found.text
        if name not in self._environment and not has_default:
            self._report_unset(name, place)
        return self._environment.get(name)

    def _report_unset(self, name: str, place: Place) -> None:
        message, hint = f"the environment variable {name} is not set", f"set it, or give a default: ${{{name}:-…}}"
        if name in self._open:
            message = f"the parameter '{name}' refers to itself, and {message}"
        elif close := nearest(name, self._parameters):
            hint = f"did you mean the parameter '{close}'?"
        self._problems.error(place, message, hint)

    def _parameter(self, name: str) -> Node:
        if name not in self._values:
            self._open.add(name)
            self._values[name] = self.of(self._parameters[name])
            self._open.discard(name)
        return self._values[name]

    def _secret(self, file: str, place: Place, *, has_default: bool) -> str | None:
        path = Path(place.file).parent / file
        try:
            content = path.read_bytes().decode().removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            if not has_default:
                reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
                hint = "relative paths start at the definition's folder"
                self._problems.error(place, f"the file of a secret cannot be read: {path}: {reason}", hint)
            return None
        self._problems.secrets.add(content)
        return content
