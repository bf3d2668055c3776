"""Checks names: no duplicates, no undeclared or unused ones, and no cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import find_cycles, references, used_names
from odradek.pipelines.definition.model import Sink, Source, Step, TopicOrigin, TopicTarget, View, place_of
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import Engine, Otherwise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Parsed, Pipeline
    from odradek.pipelines.definition.places import Place, Problems


def check_names(parsed: Parsed, graph: Graph, problems: Problems) -> None:
    pipeline = parsed.pipeline
    check_unique(
        (*pipeline.sources, *pipeline.steps), "sources and steps share one namespace, the tables of SQL", problems
    )
    check_unique(pipeline.sinks, "checkpoints are named after sinks", problems)
    check_unique(pipeline.views, "views are tables in the same warehouse", problems)
    check_references(pipeline, parsed.broken, problems)
    check_cycles(pipeline, graph, problems)
    check_loops(pipeline, problems)
    check_ends(parsed, graph, problems)


def check_unique(things: Iterable[Source | Step | Sink | View], why: str, problems: Problems) -> None:
    first: dict[str, Place] = {}
    for each in things:
        before = first.setdefault(each.name.lower(), each.place)
        if before is not each.place:
            where = f"line {before.line}" if before.file == each.place.file else str(before)
            problems.error(each.place, f"the name '{each.name}' is already used in {where}", f"choose another: {why}")


def check_references(pipeline: Pipeline, broken: frozenset[str], problems: Problems) -> None:
    declared = [each.name for each in pipeline.sources] + [each.name for each in pipeline.steps]
    known = {name.lower() for name in (*declared, *broken)}

    def check(reader: str, name: str, place: Place) -> None:
        if name.lower() not in known:
            hint = suggestion(name, declared, what="sources and steps") or "declare a source first"
            problems.error(place, f"{reader} reads '{name}', which is neither a source nor a step", hint)

    for step in pipeline.steps:
        for each in references(step):
            check(f"step '{step.name}'", each.name, each.place)
    for sink in pipeline.sinks:
        check(f"sink '{sink.name}'", sink.input, place_of(sink, "from", sink.input))
    for view in pipeline.views:
        check(f"view '{view.name}'", view.input, place_of(view, "from", view.input))


def check_cycles(pipeline: Pipeline, graph: Graph, problems: Problems) -> None:
    steps = {each.name: each for each in pipeline.steps}
    for cycle in find_cycles(graph.inputs):
        path = " ← ".join(cycle)
        what = "reads itself" if len(cycle) == 2 else "is part of a cycle"
        problems.error(steps[cycle[0]].place, f"step '{cycle[0]}' {what}: {path}", "change the input of one of them")


def check_ends(parsed: Parsed, graph: Graph, problems: Problems) -> None:
    pipeline = parsed.pipeline
    if not pipeline.sources and not parsed.broken:
        problems.error(pipeline.place, "the pipeline has no sources", "add one: sources: {name: {topic: …}}")
    if not parsed.declares_ends:
        problems.error(
            pipeline.place, "the pipeline has neither sinks nor views, so it has no output", "add a sink or a view"
        )
        return
    if problems.errors:
        return  # Another error may be the reason why a source or step looks unused.
    used = {name.lower() for name in used_names(pipeline, graph)}
    things: list[Source | Step] = [*pipeline.sources, *pipeline.steps]
    for each in things:
        if each.name.lower() not in used:
            kind = "source" if isinstance(each, Source) else "step"
            effects = source_effects(each, pipeline) if isinstance(each, Source) else step_effects(each)
            problems.warning(
                each.place,
                f"no sink and no view uses the {kind} '{each.name}'",
                f"{', '.join(('its rows are not written', *effects))}; remove it",
            )


def source_effects(source: Source, pipeline: Pipeline) -> list[str]:
    """What the engine does with a source that no sink and no view uses, in words."""
    is_read = source.is_stream or pipeline.engine is Engine.BATCH
    if not is_read or not isinstance(source.origin, TopicOrigin):
        return []
    if pipeline.dead_letters is not None:
        return ["but its records are read", "and those that cannot be parsed become dead letters"]
    return ["but its records are read", "to count those that cannot be parsed"]


def step_effects(step: Step) -> list[str]:
    """What the engine does with a step that no sink and no view uses, in words."""
    kinds = {each.otherwise for each in step.expectations}
    results = ["and its rejected rows become dead letters"] if Otherwise.QUARANTINE in kinds else []
    results += ["and a row that does not meet them stops the pipeline"] if Otherwise.FAIL in kinds else []
    return ["but its expectations are checked", *results] if kinds else []


def check_loops(pipeline: Pipeline, problems: Problems) -> None:
    """Warns of topics that the pipeline both reads and writes."""
    read = {
        topic: source.name
        for source in pipeline.sources
        if isinstance(source.origin, TopicOrigin) and source.origin.bootstrap_servers is None
        for topic in source.origin.topics
    }
    for sink in pipeline.sinks:
        target = sink.target
        if isinstance(target, TopicTarget) and target.bootstrap_servers is None and target.topic in read:
            problems.warning(
                place_of(sink, "topic"),
                f"sink '{sink.name}' writes the topic that source '{read[target.topic]}' reads",
                "records may circulate endlessly; write to another topic",
            )
