"""`parameters:` of a definition: each has the value of `--set`, otherwise that of the definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar, describe, shortened
from odradek.pipelines.definition.vocabulary import NAME
from odradek.pipelines.definition.yaml_nodes import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.places import Problems


def parameters_of(root: MappingNode, given: Mapping[str, str], problems: Problems) -> dict[str, Node]:
    """The value of each parameter; `given` overrides those of the definition."""
    found: dict[str, Node] = {}
    node = root.get("parameters")
    if node is not None and not isinstance(node, MappingNode) and not (isinstance(node, Scalar) and node.value is None):
        message = f"parameters of the pipeline must be a mapping of names, not {describe(node)}"
        problems.error(node.place, message, "parameters: {name: …}")
    for key, value in node.entries if isinstance(node, MappingNode) else ():
        if not NAME.match(key.text):
            problems.error(
                key.place,
                f"'{shortened(key.text)}' cannot be the name of a parameter",
                "use letters, digits and underscores, and do not start with a digit",
            )
        found[key.text] = value
    for name, text in given.items():
        if name not in found:
            hint = suggestion(name, found, what="parameters") or "declare it: parameters: {NAME: default}"
            problems.error(root.place, f"'{shortened(name)}' is not a parameter of the pipeline", hint)
            continue
        before = found[name]
        is_text = isinstance(before, Scalar) and isinstance(before.value, str) and "${" not in before.text
        found[name] = Scalar(text if is_text else resolve(text), text, before.place)
    return found
