"""The lineage of a plan: declarations alone, and the length of the longest path to each."""

from __future__ import annotations

from odradek.pipelines.planning.lineage import lineage_of
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
