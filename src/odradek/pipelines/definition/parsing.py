"""Parses a tree of values into the model of a pipeline. Invalid parts are reported as problems and left out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeVar

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.model import (
    DEFAULT_BOOTSTRAP_SERVERS,
    Function,
    Parsed,
    Pipeline,
    Sink,
    Source,
    Step,
    View,
)
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar, describe, shortened, value_places
from odradek.pipelines.definition.parsing_functions import parse_function_of_sql
from odradek.pipelines.definition.parsing_sinks import parse_sink
from odradek.pipelines.definition.parsing_sources import parse_source
from odradek.pipelines.definition.parsing_steps import parse_step, parse_view
from odradek.pipelines.definition.vocabulary import NAME, PIPELINE_NAME, Delivery, Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.pipelines.definition.places import Problems

PIPELINE_KEYS = (
    "pipeline", "engine", "delivery", "bootstrap_servers", "kafka", "trigger", "state_trigger",
    "dead_letters", "warehouse", "checkpoints", "master", "spark", "include", "parameters", "profiles",
    "functions", "sources", "steps", "sinks", "views",
)  # fmt: skip

Made = TypeVar("Made", Source, Step, Sink, View, Function)


def parse_pipeline(root: Node, problems: Problems) -> Parsed | None:
    """The model, or None if the tree is not a pipeline definition at all."""
    if not isinstance(root, MappingNode):
        problems.error(
            root.place, f"a definition must be a mapping, not {describe(root)}", "start with `pipeline: name`"
        )
        return None
    fields = Fields(root, PIPELINE_KEYS, "the pipeline", problems)
    name = fields.text("pipeline") or ""
    if "pipeline" not in fields:
        problems.error(root.place, "the pipeline has no name", "start with `pipeline: name`")
    if name and not PIPELINE_NAME.match(name):
        fields.wrong("pipeline", "a name", "use letters, digits, dashes and underscores")
    broken: set[str] = set()
    views: list[View] = []

    def step(key: Scalar, node: Node, into: Problems) -> Step | None:
        made, view = parse_step(key, node, into)
        if view is not None:
            views.append(view)
        return made

    sources: list[Source] = section(fields, "sources", parse_source, broken)
    steps: list[Step] = section(fields, "steps", step, broken)
    sinks: list[Sink] = section(fields, "sinks", parse_sink, set())
    views += section(fields, "views", parse_view, set())
    functions: list[Function] = section(fields, "functions", parse_function_of_sql, set())
    pipeline = Pipeline(
        name=name,
        sources=tuple(sources),
        steps=tuple(steps),
        sinks=tuple(sinks),
        views=tuple(views),
        engine=fields.choice("engine", Engine, Engine.STANDARD),
        delivery=fields.choice("delivery", Delivery, Delivery.AT_LEAST_ONCE),
        bootstrap_servers=fields.text("bootstrap_servers") or DEFAULT_BOOTSTRAP_SERVERS,
        kafka=fields.settings("kafka"),
        trigger=fields.duration("trigger"),
        state_trigger=fields.duration("state_trigger"),
        dead_letters=fields.topic("dead_letters"),
        warehouse=fields.text("warehouse"),
        checkpoints=fields.text("checkpoints"),
        master=fields.text("master"),
        spark=fields.settings("spark"),
        functions=tuple(functions),
        secrets=frozenset(problems.secrets),
        place=root.place,
    )
    return Parsed(pipeline, frozenset(broken), any(key in fields for key in ("sinks", "views")) or bool(views))


def section(
    fields: Fields, key: str, parse: Callable[[Scalar, Node, Problems], Made | None], broken: set[str]
) -> list[Made]:
    """The entries of one section, by name."""
    node = fields.node(key)
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return []
    if not isinstance(node, MappingNode):
        fields.wrong(key, "a mapping of names", f"{key}: {{name: …}}")
        return []
    made = []
    for name, value in node.entries:
        if not NAME.match(name.text):
            fields.problems.error(
                name.place,
                f"'{shortened(name.text)}' cannot be the name of a {key.removesuffix('s')}",
                "use letters, digits and underscores, and do not start with a digit",
            )
        found = parse(name, value, fields.problems)
        if found is None:
            broken.add(name.text)
        else:
            made.append(dataclasses.replace(found, places=value_places(value)))
    return made
