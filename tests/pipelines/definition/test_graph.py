"""The order of a graph, its cycles, and its drawings."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.definition.drawing import draw_text
from odradek.pipelines.definition.drawing_svg import draw_svg
from odradek.pipelines.definition.graph import build_graph, find_cycles, ordered, reachable
from odradek.pipelines.definition.layout import lay_out
from odradek.pipelines.definition.lineage import lineage_of
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
  d: {sql: "select c.id, b.name from c join b on c.id = b.id"}
views:
  v: {from: b, key: id}
sinks:
  o: {from: c, topic: "out"}
  p: {from: raw, topic: "raw-out"}
  q: {from: d, topic: joined}
"""
)


@given(GRAPHS)
def test_everything_comes_after_its_inputs_or_stands_in_or_behind_a_circle(inputs: dict[str, tuple[str, ...]]) -> None:
    order = ordered(NAMES, inputs)
    for number, name in enumerate(order):
        assert set(inputs[name]) <= set(order[:number])
    for name in set(NAMES) - set(order):
        assert any(each in reachable(each, inputs) for each in {name, *reachable(name, inputs)})


@given(GRAPHS)
def test_every_circle_is_found_and_is_one(inputs: dict[str, tuple[str, ...]]) -> None:
    cycles = find_cycles(inputs)
    for cycle in cycles:
        assert cycle[0] == cycle[-1]
        assert all(after in inputs[before] for before, after in pairwise(cycle))
    assert bool(cycles) == (len(ordered(NAMES, inputs)) < len(NAMES))


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


def test_tables_of_sql_are_inputs_whatever_their_case() -> None:
    graph = build_graph(sound(PIPELINE))
    assert graph.inputs == {"a": ("rigs",), "b": ("a", "pumps"), "c": ("a",), "d": ("c", "b")}
    assert graph.upstream("b") == ["rigs", "pumps", "a", "b"]


def test_lineage_lists_nodes_after_their_inputs() -> None:
    nodes = lineage_of(sound(PIPELINE))
    seen: set[str] = set()
    for node in nodes:
        assert set(node.inputs) <= seen
        seen.add(node.id)
    assert {node.id: node.detail for node in nodes}["step/c"] == "aggregate by id, windows of 1 minute"


def test_the_text_drawing() -> None:
    assert draw_text(sound(PIPELINE)).splitlines() == [
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
    lines = draw_text(sound(text)).splitlines()
    assert all(len(line) <= 80 or long in line for line in lines)
    assert [line for line in lines if line.endswith("…")]


def test_the_svg_is_well_formed_and_names_everything() -> None:
    drawing = draw_svg(sound(PIPELINE.replace("pipeline: p", "pipeline: p-1").replace('"out"', '"out.x"')))
    root = ElementTree.fromstring(drawing)
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"p-1", "rigs", "a", "b", "c", "d", "v", "o", "p", "q", "topic out.x", "source", "sink"} <= set(texts)
    edges = [each for each in root.iter() if each.get("class") == "edge"]
    assert len(edges) == 10
    assert "prefers-color-scheme: dark" in drawing


def test_what_would_be_markup_is_escaped_in_the_svg() -> None:
    text = "pipeline: p\nsources: {s: {pattern: 'a<b&c', format: text}}\nsinks: {o: {from: s, console: true}}\n"
    assert "a&lt;b&amp;c" in draw_svg(sound(text))
