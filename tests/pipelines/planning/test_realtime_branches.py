"""Each count of the realtime engine belongs to one branch: the last that reads the source or step."""

from __future__ import annotations

import textwrap

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.loading import define_yaml
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.planning.realtime_branches import counted_names, name_of, outputs_of

DEFINITION = """
    pipeline: p
    engine: realtime
    dead_letters: dead
    sources:
      one: {topic: one, schema: "id INT"}
      two: {topic: two, schema: "id INT"}
      table: {files: {path: t.json, format: json}, schema: "id INT"}
    steps:
      static: {sql: select id from table, expect: {known: id is not null}}
      both: {sql: select id from one union all select id from two, expect: {low: id < 5}}
      joined: {sql: select id from both join static using (id), expect: {odd: {check: id % 2 = 1, otherwise: KIND}}}
      unread: {sql: select id from one, expect: {high: id > 5}}
    sinks:
      all: {from: both, topic: all}
      joined: {from: joined, topic: joined}
"""


def counted(*replacements: tuple[str, str]) -> dict[str, list[str]]:
    text = textwrap.dedent(DEFINITION)
    for old, new in replacements:
        text = text.replace(old, new)
    pipeline = define_yaml(text, "p.yml", {}, None, Problems()).require()
    graph = build_graph(pipeline)
    names = counted_names(pipeline, graph)
    return dict(zip(map(name_of, outputs_of(pipeline, graph)), names, strict=True))


def test_branches_of_dead_letters_count_what_they_read() -> None:
    assert counted(("KIND", "quarantine")) == {
        "sink all": [],
        "sink joined": [],
        "dead letters of source one": [],
        "dead letters of source two": [],
        "dead letters of step joined": ["two", "both", "joined"],
        "checks of step unread": ["one", "unread"],
    }
    assert counted(("KIND", "drop")) == {
        "sink all": [],
        "sink joined": ["both", "joined"],
        "dead letters of source one": [],
        "dead letters of source two": ["two"],
        "checks of step unread": ["one", "unread"],
    }


def test_without_dead_letters_the_last_sink_counts() -> None:
    unread = "  unread: {sql: select id from one, expect: {high: id > 5}}\n"
    without = (("KIND", "drop"), ("dead_letters: dead\n", ""), (unread, ""))
    assert counted(*without) == {"sink all": [], "sink joined": ["one", "two", "both", "joined"]}
    swapped = (
        ("  all: {from: both, topic: all}\n", ""),
        ("topic: joined}\n", "topic: joined}\n  all: {from: both, topic: all}\n"),
    )
    assert counted(*without, *swapped) == {"sink joined": ["joined"], "sink all": ["one", "two", "both"]}


def test_a_console_is_the_only_output() -> None:
    console = (("KIND", "drop"), ("dead_letters: dead\n", ""), ("  all: {from: both, topic: all}\n", ""))
    assert counted(*console, ("topic: joined}", "console: true}")) == {"sink joined": ["one", "two", "both", "joined"]}


def test_steps_that_no_output_reads_are_checked_by_as_few_branches_as_possible() -> None:
    more = (
        "sinks:\n",
        "  passing: {sql: select id from unread}\n  last: {sql: select id from passing, expect: {o: id > 1}}\nsinks:\n",
    )
    found = counted(("KIND", "drop"), more)
    assert [name for name in found if name.startswith("checks")] == ["checks of step last"]
    assert found["checks of step last"] == ["one", "unread", "last"]
