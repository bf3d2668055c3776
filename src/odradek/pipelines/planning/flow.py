"""A flow: the part of a pipeline that one streaming query runs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.vocabulary import Duration, SinkMode

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, Sink, View

# State and views cost a commit for each batch, and timers a batch for each trigger: a longer interval saves CPU.
STATE_TRIGGER = Duration(1000)


@dataclass(frozen=True, slots=True)
class Flow:
    """One streaming query. `after` are the steps that each batch of the root's rows goes through."""

    name: str
    root: str
    mode: SinkMode = SinkMode.APPEND  # APPEND or UPDATE
    after: tuple[str, ...] = ()
    sinks: tuple[Sink, ...] = ()
    views: tuple[View, ...] = ()
    owned: frozenset[str] = field(default_factory=frozenset)
    counted: frozenset[str] = field(default_factory=frozenset)  # sources whose unparsed records the query counts
    files: Sink | None = None  # written by Spark's file sink, without foreachBatch
    aggregate: View | None = None  # aggregated by the streaming query, before the batch
    uses_state_trigger: bool = False  # runs with state_trigger


def state_interval(flow: Flow, pipeline: Pipeline) -> Duration | None:
    """The shortest interval of a flow with state or of a view; None for other flows."""
    is_slow = flow.uses_state_trigger or flow.root not in {each.name for each in pipeline.sources}
    return (pipeline.state_trigger or STATE_TRIGGER) if is_slow else None
