"""`late: dead_letters` is accepted where the dead letters are exactly the rows that an operator drops."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.vocabulary import Late
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.late_rows import late_inputs
from odradek.pipelines.planning.streams import Streams
from tests.pipelines.definition.definitions import reported_for, sound

HEAD = """
pipeline: p
dead_letters: dead
warehouse: sqlite:///w.db
sources:
  views:
    topic: views
    schema: "user STRING, at TIMESTAMP"
    watermark: {column: at, delay: 1 minute, late: dead_letters}
  again: {topic: views, schema: "user STRING, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  clicks: {topic: clicks, schema: "user STRING, clicked_at TIMESTAMP", watermark: {column: clicked_at, delay: 1 minute}}
"""
WINDOW = "  s: {from: views, by: [user], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}\n"
BY_WINDOW = "  s: {from: r, by: [user, W], aggregate: {n: count(*)}}\n"
JOIN = "  s: {from: views, join: {stream: clicks, on: [user], within: 1 minute}}\n"
SINK = "sinks: {o: {from: s, topic: o}}\n"


def errors(steps: str, ends: str = SINK, head: str = HEAD) -> list[str]:
    return [line for line in reported_for(f"steps:\n{steps}{ends}", head=head) if line.startswith("error")]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (WINDOW, [("views", "s", "views", "at")]),
        (WINDOW.replace("size: 1 minute", "gap: 1 minute"), [("views", "s", "views", "at")]),
        (JOIN, [("views", "s", "views", "at")]),
        (
            '  r: {sql: "select user, at as seen from views"}\n'
            + WINDOW.replace("from: views", "from: r").replace("column: at", "column: seen"),
            [("views", "s", "r", "seen")],
        ),
        ("  s: {sql: select user from views}\n", []),
    ],
)
def test_late_rows_are_found_in_front_of_the_first_state(steps: str, found: list[tuple[str, ...]]) -> None:
    assert errors(steps) == []
    pipeline = sound(f"{HEAD}steps:\n{steps}{SINK}")
    graph = build_graph(pipeline)
    streams = Streams.of(pipeline, graph)
    late = [each for flow in split_flows(pipeline, graph) for each in late_inputs(pipeline, graph, streams, flow)]
    assert [(each.source.name, each.step.name, each.input, each.event_time) for each in late] == found


def test_a_column_with_the_name_of_event_time_is_not_late() -> None:
    computed = '  r: {sql: "select user, at + interval 1 hour as at from views"}\n'
    steps = computed + WINDOW.replace("from: views", "from: r")
    sink = SINK.replace("topic: o", "topic: o, mode: update")
    assert errors(steps, sink) == []
    pipeline = sound(f"{HEAD}steps:\n{steps}{sink}")
    graph = build_graph(pipeline)
    flows, streams = split_flows(pipeline, graph), Streams.of(pipeline, graph)
    assert [late_inputs(pipeline, graph, streams, each) for each in flows] == [[] for _ in flows]


@pytest.mark.parametrize(
    ("steps", "ends", "message"),
    [
        (
            "  r: {sql: \"select user, window(at, '1 minute') as w from views\"}\n" + BY_WINDOW,
            SINK,
            "cannot be exact: step 's' groups by windows of a step before it",
        ),
        (WINDOW.replace("size", "slide: 10 s, size"), SINK, "sliding windows"),
        ("  s: {from: views, deduplicate: {key: [user], within: 1 minute}}\n", SINK, "neither an aggregate nor a join"),
        (
            "  s: {sql: \"select user, count(*) n from views group by user, window(at, '1 minute')\"}\n",
            SINK,
            "neither an aggregate nor a join",
        ),
        (WINDOW, SINK + "views: {v: {from: s, key: [user, window_end]}}\n", "several flows (s, s-changes)"),
        (WINDOW, "sinks: {o: {from: s, files: {path: out, format: json}}}\n", "written to files"),
        (
            '  r: {sql: "select user, at as seen_at from views"}\n' + JOIN.replace("clicks", "r"),
            SINK,
            "reads the source more than once",
        ),
        (
            '  r: {sql: "select user, at from views union all select user, at from views"}\n'
            + WINDOW.replace("from: views", "from: r"),
            SINK,
            "reads the source more than once",
        ),
        (
            '  other: {sql: "select user, at as other_at from again"}\n' + JOIN.replace("clicks", "other"),
            SINK,
            "reads the topic by another source, too",
        ),
        ("", "views: {v: {from: views, by: [at], aggregate: {n: count(*)}}}\n", "view 'v' groups by event time"),
    ],
)
def test_what_cannot_be_exact_is_refused(steps: str, ends: str, message: str) -> None:
    text = f"steps:\n{steps}{ends}" if steps else ends
    found = [line for line in reported_for(text, head=HEAD) if line.startswith("error")]
    assert [line for line in found if message in line and "late: dead_letters of source 'views'" in line], found


def test_dead_letters_need_a_topic() -> None:
    found = errors(WINDOW, head=HEAD.replace("dead_letters: dead\n", ""))
    assert [line for line in found if "late: dead_letters of source 'views' needs the dead-letter topic" in line], found


def test_exactly_once_and_files_are_refused() -> None:
    found = errors(WINDOW, head=HEAD.replace("dead_letters: dead\n", "dead_letters: dead\ndelivery: exactly_once\n"))
    assert [line for line in found if "writes at least once" in line], found
    files = HEAD.replace("    topic: views\n", "    files: {path: in, format: json}\n    stream: true\n")
    assert [line for line in errors(WINDOW, head=files) if "applies to the records of topics" in line]


def test_late_rows_are_counted_by_default() -> None:
    pipeline = sound(f"{HEAD}steps:\n{JOIN}{SINK}")
    assert [each.watermark.late for each in pipeline.sources if each.watermark] == [
        Late.DEAD_LETTERS,
        Late.COUNT,
        Late.COUNT,
    ]
    found = errors(WINDOW, head=HEAD.replace("late: dead_letters", "late: never"))
    assert [line for line in found if "late of watermark" in line], found
