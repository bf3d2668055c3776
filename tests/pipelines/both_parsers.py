"""Parses each definition of the tests by both parsers, and compares their models and the lines of their problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition import parsing, parsing_planned
from odradek.pipelines.definition.places import Problems

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Parsed
    from odradek.pipelines.definition.nodes import Node

parse_as_before = parsing.parse_pipeline


def parse_by_both(root: Node, problems: Problems) -> Parsed | None:
    """The model by the present parser, equal to that by the planned one."""
    present, planned = Problems(), Problems()
    present.secrets = planned.secrets = problems.secrets
    expected = parse_as_before(root, present)
    found = parsing_planned.parse_pipeline(root, planned)
    assert lines(planned) == lines(present), "\n".join(["", *map(str, present), "planned:", *map(str, planned)])
    assert (found is None) == (expected is None)
    if expected is not None and found is not None:
        assert found.declares_ends == expected.declares_ends
        assert declared(found) | found.broken == declared(expected) | expected.broken
        if not present.errors:
            assert found == expected
            assert with_places(found) == with_places(expected)
    return parse_as_before(root, problems)


def with_places(value: object) -> object:
    """A value with its places, which are left out when models are compared."""
    if is_dataclass(value):
        return [(each.name, with_places(getattr(value, each.name))) for each in fields(value)]
    if isinstance(value, Mapping):
        return {key: with_places(each) for key, each in value.items()}
    return [with_places(each) for each in value] if isinstance(value, tuple) else value


def lines(problems: Problems) -> set[tuple[str, int, str]]:
    return {(each.place.file, each.place.line, each.severity) for each in problems}


def declared(parsed: Parsed) -> set[str]:
    """Names of tables, of which the planned parser leaves out some that are incomplete."""
    return {each.name for each in parsed.pipeline.sources} | {each.name for each in parsed.pipeline.steps}
