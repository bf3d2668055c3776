"""Replaces `${NAME}` and `${NAME:-default}` in the texts of a tree from the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar
from odradek.pipelines.definition.places import Place
from odradek.pipelines.definition.yaml_text import substitute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.places import Problems


def expanded(node: Node, environment: Mapping[str, str], problems: Problems) -> Node:
    """The tree with its variables replaced; unset ones without a default are reported."""
    if isinstance(node, MappingNode):
        entries = tuple((key, expanded(value, environment, problems)) for key, value in node.entries)
        return MappingNode(entries, node.place)
    if isinstance(node, ListNode):
        return ListNode(tuple(expanded(each, environment, problems) for each in node.items), node.place)
    if not isinstance(node.value, str) or "${" not in node.value:
        return node
    text, segments, missing = substitute(node.value, node.place, environment)
    for name, place in missing:
        report_unset(name, place, problems)
    return Scalar(text, text, Place(node.place.file, node.place.line, node.place.column, segments))


def report_unset(name: str, place: Place, problems: Problems) -> None:
    hint = f"set it, or give a default: ${{{name}:-…}}"
    problems.error(place, f"the environment variable {name} is not set", hint)
