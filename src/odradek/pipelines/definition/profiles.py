"""`parameters:` and `profiles:` of a definition.

A profile overrides settings of the pipeline: a mapping (`kafka`, `spark`, `parameters`) key by key, other values as a
whole. A parameter has the value of `--set`, otherwise of the profile, otherwise of the definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.keys import SETTINGS
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar, describe, shortened
from odradek.pipelines.definition.vocabulary import NAME
from odradek.pipelines.definition.yaml_nodes import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.places import Problems

PROFILE_KEYS = ("parameters", *(each.name for each in SETTINGS))


def with_profile(root: MappingNode, name: str | None, problems: Problems) -> MappingNode:
    """The definition with the settings of the profile, and without `profiles`."""
    declared = {key.text: value for key, value in entries_of(root.get("profiles"), "profiles", problems)}
    for profile, value in declared.items():
        Fields(value, PROFILE_KEYS, f"profile '{shortened(profile)}'", problems)
    kept = {key.text: (key, value) for key, value in root.entries if key.text != "profiles"}
    if name is None:
        return MappingNode(tuple(kept.values()), root.place)
    chosen = declared.get(name)
    if chosen is None:
        hint = suggestion(name, declared, what="profiles") or "declare it: profiles: {NAME: {…}}"
        problems.error(root.place, f"there is no profile '{shortened(name)}'", hint)
    for key, value in chosen.entries if isinstance(chosen, MappingNode) else ():
        before = kept[key.text][1] if key.text in kept else None
        if isinstance(before, MappingNode) and isinstance(value, MappingNode):
            check_declared(key.text, before, value, problems)
            inner = {name.text: (name, each) for name, each in (*before.entries, *value.entries)}
            value = MappingNode(tuple(inner.values()), before.place)  # noqa: PLW2901 - the merged value
        kept[key.text] = (key, value)
    return MappingNode(tuple(kept.values()), root.place)


def check_declared(key: str, before: MappingNode, after: MappingNode, problems: Problems) -> None:
    if key != "parameters":
        return
    known = [name.text for name, _value in before.entries]
    for name, _value in after.entries:
        if name.text not in known:
            hint = suggestion(name.text, known, what="parameters")
            problems.error(name.place, f"'{shortened(name.text)}' is not a parameter of the pipeline", hint)


def parameters_of(root: MappingNode, given: Mapping[str, str], problems: Problems) -> dict[str, Node]:
    """The value of each parameter; `given` overrides those of the definition and of the profile."""
    found: dict[str, Node] = {}
    for key, value in entries_of(root.get("parameters"), "parameters", problems):
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


def entries_of(node: Node | None, key: str, problems: Problems) -> tuple[tuple[Scalar, Node], ...]:
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    if not isinstance(node, MappingNode):
        problems.error(
            node.place, f"{key} of the pipeline must be a mapping of names, not {describe(node)}", f"{key}: {{name: …}}"
        )
        return ()
    return node.entries
