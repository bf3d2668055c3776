"""Checks that no column has the name of an internal one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Pipeline, Source, Step
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.definition.table_columns import Columns

RESERVED = frozenset(
    """
    __latest __origin __parsed __period __place __position __rank __read __rejected __split __unreadable __value
    __violated __window
    """.split()  # noqa: SIM905 - a list would have a line for each name
)


def check_reserved(pipeline: Pipeline, known: Mapping[str, Columns | None], problems: Problems) -> None:
    things: list[Source | Step] = [*pipeline.sources, *pipeline.steps]
    for thing in things:
        columns = known.get(thing.name)
        for name in () if columns is None else columns.types:
            if name.lower() in RESERVED:
                problems.error(thing.place, f"'{thing.name}' has the column '{name}', which is internal", "rename it")
