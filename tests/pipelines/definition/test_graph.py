"""The lineage of a pipeline, and its drawings."""

from __future__ import annotations

from odradek.pipelines.planning.lineage import draw_text, lineage_of
from odradek.pipelines.planning.rules import plan_again
from tests.pipelines.definition.definitions import SOURCE, sound

PIPELINE = (
    SOURCE
    + """
dead_letters: dead
steps:
  a: {sql: select * from RIGS}
  b: {sql: select * from a join pumps using (id)}
  c: {from: a, window: {column: at, size: 1 minute}, by: [id], aggregate: {n: count(*)}}
  d: {sql: "select c.id, b.name from c join b on c.id = b.id and b.at = c.window_end"}
views:
  v: {from: b, key: id, order_by: at}
sinks:
  o: {from: c, topic: "out"}
  p: {from: raw, topic: "raw-out"}
  q: {from: d, topic: joined}
"""
)


def drawn(text: str) -> str:
    pipeline = sound(text)
    return draw_text(pipeline, lineage_of(plan_again(pipeline)))


def test_lineage_lists_nodes_after_their_inputs() -> None:
    nodes = lineage_of(plan_again(sound(PIPELINE)))
    seen: set[str] = set()
    for node in nodes:
        assert set(node.inputs) <= seen
        seen.add(node.id)
    assert {node.id: node.detail for node in nodes}["step/c"] == "aggregate by id, windows of 1 minute"


def test_the_text_drawing() -> None:
    assert drawn(PIPELINE).splitlines() == [
        "p  standard engine · at least once · dead letters to dead",
        "",
        "● pumps  csv pumps.csv",
        "└─ ○ b  ↓",
        "● rigs  topic rigs",
        "└─ ○ a  sql",
        "   ├─ ○ b  sql",
        "   │  ├─ ○ d  ↓",
        "   │  └─ ▦ v  latest by id",
        "   └─ ○ c  aggregate by id, windows of 1 minute",
        "      ├─ ○ d  sql",
        "      │  └─ ▶ q  topic joined",
        "      └─ ▶ o  topic out",
        "● raw  topic raw",
        "└─ ▶ p  topic raw-out",
        "",
        "● source   ○ step   ▦ view   ▶ sink",
    ]


def test_the_text_drawing_fits_its_width_and_shows_every_node_once_in_full() -> None:
    long = "x" * 100
    text = SOURCE + f"steps: {{{long}: {{sql: select * from rigs}}}}\nsinks: {{o: {{from: {long}, topic: {long}}}}}\n"
    lines = drawn(text).splitlines()
    assert all(len(line) <= 80 or long in line for line in lines)
    assert [line for line in lines if line.endswith("…")]
