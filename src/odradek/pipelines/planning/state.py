"""What state a step keeps. Flows, checks, fingerprints and engines ask here; nothing else decides.

A step that keeps state is computed by the streaming query over all rows, never over the rows of a single batch.
"""

from __future__ import annotations

from enum import Flag, auto
from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.planning.queries import has_sessions, query_of
from odradek.pipelines.planning.query_facts import query_facts

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
    SESSIONS = auto()  # with AGGREGATION; Spark writes a session once it has ended
    FUNCTION = auto()  # of a Python function; with AGGREGATION if it aggregates


def state_of(step: Step, streaming: Collection[str]) -> State:
    """The state of a step; `streaming` has the names of all streams."""
    operation = step.operation
    if step.name not in streaming:
        return State.NONE
    if isinstance(operation, Aggregation):
        is_session = operation.window is not None and operation.window.gap is not None
        return State.AGGREGATION | State.SESSIONS if is_session else State.AGGREGATION
    if isinstance(operation, StreamJoin):
        return State.STREAM_JOIN
    if isinstance(operation, Deduplication):
        return State.DEDUPLICATION
    if isinstance(operation, KeyedState):
        return State.KEYED
    if isinstance(operation, PythonFunction):
        kind = State.FUNCTION | State.AGGREGATION if operation.updates_rows else State.FUNCTION
        return kind if operation.keeps_state else State.NONE
    query = query_of(step)
    if query is None:
        return State.NONE
    facts = query_facts(query, streaming)
    state = State.AGGREGATION if facts.aggregations else State.NONE
    state |= State.SESSIONS if state and has_sessions(query) else State.NONE
    return state | State.STREAM_JOIN if facts.joins_streams else state
