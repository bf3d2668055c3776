"""The lineage of a pipeline, and its drawings."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.definition.layout import lay_out
from odradek.pipelines.definition.lineage import draw_text
from odradek.pipelines.planning.lineage import lineage_of
from odradek.pipelines.planning.rules import plan_again
from tests.pipelines.definition.definitions import SOURCE, sound

NAMES = [f"n{i}" for i in range(8)]
GRAPHS = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple) for name in NAMES}
)
ACYCLIC = st.tuples(
    *[st.lists(st.sampled_from(NAMES[:i]), max_size=3, unique=True) if i else st.just([]) for i in range(len(NAMES))]
).map(lambda inputs: {name: tuple(before) for name, before in zip(NAMES, inputs, strict=True)})

PIPELINE = (
    SOURCE
    + """
dead_letters: dead
steps:
  a: {sql: select * from RIGS}
  b: {from: a, join: {table: pumps, on: id}}
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


@given(ACYCLIC)
def test_nodes_of_a_drawing_do_not_overlap_and_edges_go_to_the_right(inputs: dict[str, tuple[str, ...]]) -> None:
    layout = lay_out(inputs, dict.fromkeys(inputs, 40.0), 10.0)
    level = {node: number for number, layer in enumerate(layout.layers) for node in layer}
    for layer in layout.layers:
        for above, below in pairwise(layer):
            least = (40 * (above in inputs) + 40 * (below in inputs)) / 2 + 10
            assert layout.heights[below] - layout.heights[above] >= least - 0.001
    for (start, end), route in layout.routes.items():
        assert (route[0], route[-1]) == (start, end)
        assert all(level[after] == level[before] + 1 for before, after in pairwise(route))
    assert set(layout.routes) == {(each, node) for node, before in inputs.items() for each in before}


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
        "   ├─ ○ b  inner join pumps on id",
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
