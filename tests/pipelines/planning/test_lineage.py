"""The lineage of a plan: declarations alone, the length of the longest path to each, and the drawing."""

from __future__ import annotations

from odradek.pipelines.planning.lineage import draw_text, lineage_of
from odradek.pipelines.planning.rules import plan_again
from tests.pipelines.definition.definitions import SOURCE, sound
from tests.pipelines.planning.plans import sound_plan

TEXT = """
steps:
  settled:
    sql: |
      with large as (select * from orders where amount > 100)
      select o.id, o.at, p.paid from large o join payments p
      on o.id = p.id and p.paid_at between o.at and o.at + interval 1 hour
  places: {sql: "select s.id, c.country from settled s left join customers c on s.id = c.customer"}
sinks: {places: {from: places, topic: places}}
views: {paid: {from: payments, by: [id], aggregate: {n: count(*)}}}
"""


def test_hidden_tables_are_parts_of_their_declarations() -> None:
    nodes = lineage_of(sound_plan(TEXT))
    assert [(each.id, each.inputs, each.level) for each in nodes] == [
        ("source/orders", (), 0),
        ("source/payments", (), 0),
        ("source/clicks", (), 0),
        ("source/customers", (), 0),
        ("step/settled", ("source/orders", "source/payments"), 1),
        ("step/places", ("step/settled", "source/customers"), 2),
        ("view/paid", ("source/payments",), 1),
        ("sink/places", ("step/places",), 3),
    ]


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
