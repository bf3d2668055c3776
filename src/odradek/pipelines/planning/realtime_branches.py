"""The branches of the realtime engine: the outputs of a pipeline that cannot run in one pass, each of which reads the
streams for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import Sink, Source
from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.streams import streaming_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step

    Output = Sink | Source | Step  # a source or step: its dead letters, or a step of which only checks are wanted

ALL = "all outputs"
CHECKS = "checks"


def outputs_of(pipeline: Pipeline, graph: Graph) -> list[Output]:
    """The sinks, the sources and steps with dead letters, and steps with expectations that none of these reads, in the
    order of their branches; a console is the only output."""
    found: list[Output] = list(pipeline.sinks)
    if pipeline.has_console:
        return found
    if pipeline.dead_letters is not None:
        found += [each for each in pipeline.sources if each.is_topic_stream]
        found += [each for each in pipeline.steps if has_quarantine(each)]
    return found + unread_checks(pipeline, graph, found)


def unread_checks(pipeline: Pipeline, graph: Graph, outputs: Sequence[Output]) -> list[Output]:
    """The fewest steps by which the expectations of all steps are checked that no output reads."""
    streaming = streaming_names(pipeline, graph)
    checked = {each.name: each for each in pipeline.steps if each.expectations and each.name in streaming}
    read = {name for each in outputs for name in graph.upstream(root_of(each))}
    found: list[Output] = []
    for name in reversed(graph.order):
        if name in checked and name not in read:
            found.insert(0, checked[name])
            read.update(graph.upstream(name))
    return found


def has_quarantine(step: Step) -> bool:
    return any(each.otherwise is Otherwise.QUARANTINE for each in step.expectations)


def root_of(output: Output) -> str:
    """The source or step that an output reads."""
    return output.input if isinstance(output, Sink) else output.name


def counted_names(pipeline: Pipeline, graph: Graph) -> list[list[str]]:
    """For each output, the streams whose records and the steps whose violations its branch counts: of the branches that
    read them the last. The branches of dead letters are the last, so that those of sinks do not wait for the counts."""
    streaming = streaming_names(pipeline, graph)
    counted = {each.name for each in pipeline.steps if each.expectations}
    counted |= {each.name for each in pipeline.sources if each.is_topic_stream}
    outputs = outputs_of(pipeline, graph)
    last = {name: number for number, each in enumerate(outputs) for name in graph.upstream(root_of(each))}
    names = [each for each in graph.order if each in counted & streaming and each in last]
    return [[name for name in names if last[name] == number] for number in range(len(outputs))]


def reads_text(pipeline: Pipeline, graph: Graph, *, is_one_pass: bool) -> str:
    """The reads of streams by the one query, in order: Spark stores the offsets of each by its number."""
    streaming = streaming_names(pipeline, graph)
    if is_one_pass:
        reads = {ALL: [each.name for each in pipeline.sources if each.is_stream]}
    else:
        reads = {name_of(each): streams_before(root_of(each), graph, streaming) for each in outputs_of(pipeline, graph)}
    if len(reads) == 1:  # as in one pass, all that was read is written
        reads = {ALL: next(iter(reads.values()))}
    return ", ".join(f"{stream} for {name}" for name, streams in reads.items() for stream in streams)


def former_reads(reads: str) -> str:
    """What earlier versions, which did not store it, read for the same outputs: no stream for checks only."""
    return ", ".join(each for each in reads.split(", ") if f" for {CHECKS}" not in each)


def name_of(output: Output) -> str:
    if isinstance(output, Sink):
        return f"sink {output.name}"
    if isinstance(output, Source):
        return f"dead letters of source {output.name}"
    return f"{'dead letters' if has_quarantine(output) else CHECKS} of step {output.name}"


def streams_before(name: str, graph: Graph, streaming: frozenset[str]) -> list[str]:
    """The sources of streams that a source or step reads, in the order in which queries name them."""
    inputs = [each for each in graph.inputs.get(name, ()) if each in streaming]
    if not inputs:
        return [name] if name in streaming else []
    return list(dict.fromkeys(source for each in inputs for source in streams_before(each, graph, streaming)))
