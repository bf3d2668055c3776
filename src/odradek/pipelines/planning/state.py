"""What state a step keeps. Flows, checks, fingerprints and engines ask here; nothing else decides.

A step that keeps state is computed by the streaming query over all rows, never over the rows of a single batch.
"""

from __future__ import annotations

from enum import Flag, auto
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import Aggregation, Deduplication, KeyedState, PythonFunction
from odradek.pipelines.planning.queries import query_facts, query_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.pipelines.definition.model import Step


class State(Flag):
    """The kinds of state of a step; a query may have several."""

    NONE = 0
    AGGREGATION = auto()
    DEDUPLICATION = auto()
    KEYED = auto()
    STREAM_JOIN = auto()
    FUNCTION = auto()  # a Python function whose plan keeps state, of any kind

    @property
    def updates_rows(self) -> bool:
        """Whether a row of the result may change with later records."""
        return bool(self & (State.AGGREGATION | State.FUNCTION))


def state_of(step: Step, streaming: Collection[str]) -> State:
    """The state of a step; `streaming` has the names of all streams."""
    operation = step.operation
    if step.name not in streaming:
        return State.NONE
    if isinstance(operation, Aggregation):
        return State.AGGREGATION
    if isinstance(operation, Deduplication):
        return State.DEDUPLICATION
    if isinstance(operation, KeyedState):
        return State.KEYED
    if isinstance(operation, PythonFunction):
        return State.FUNCTION if operation.keeps_state else State.NONE
    query = query_of(step)
    if query is None:
        return State.NONE
    facts = query_facts(query, streaming)
    state = State.AGGREGATION if facts.aggregations else State.NONE
    return state | State.STREAM_JOIN if facts.joins_streams else state
