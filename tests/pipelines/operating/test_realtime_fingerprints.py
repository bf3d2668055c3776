"""The checkpoint of the realtime engine has the offsets of each read of a stream, by its position in the query."""

from __future__ import annotations

import textwrap

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.loading import define_yaml
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.operating.fingerprints import Fingerprints, Reader, find_changes, merge

REALTIME = """
    pipeline: p
    engine: realtime
    dead_letters: dead
    sources: {one: {topic: one, schema: "id INT"}}
    steps:
      all: {sql: "select explode(array(id, 1)) as id from one"}
    sinks:
      a: {from: all, topic: a}
      b: {from: all, topic: b}
"""
BRANCHES = "one for sink a, one for sink b, one for dead letters of source one"
ANOTHER_SINK = ("sinks:\n", "sinks:\n  c: {from: one, topic: c}\n")
SWAPPED = (
    "  a: {from: all, topic: a}\n  b: {from: all, topic: b}\n",
    "  b: {from: all, topic: b}\n  a: {from: all, topic: a}\n",
)


def realtime(*replacements: tuple[str, str], is_one_pass: bool | None = False) -> Fingerprints:
    text = textwrap.dedent(REALTIME)
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    pipeline = define_yaml(text, "p.yml", {}, None, Problems()).require()
    return Reader(pipeline, build_graph(pipeline), {}, {}, is_one_pass=is_one_pass).read()


def realtime_changes(before: Fingerprints, after: Fingerprints) -> list[str]:
    return [str(each) for each in find_changes(before, after, {"realtime"})]


@pytest.mark.parametrize(
    ("replacement", "reads"),
    [
        (SWAPPED, "one for sink b, one for sink a, one for dead letters of source one"),
        (ANOTHER_SINK, f"one for sink c, {BRANCHES}"),
        (("dead_letters: dead\n", ""), "one for sink a, one for sink b"),
    ],
)
def test_branches_of_the_realtime_engine_keep_their_offsets_by_position(
    replacement: tuple[str, str], reads: str
) -> None:
    """Spark would give the offsets of one output to another, or refuse another number of them."""
    assert realtime_changes(realtime(), realtime(replacement)) == [
        f"flow realtime: reads of streams: {BRANCHES} → {reads}"
    ]


def test_the_realtime_engine_in_one_pass_reads_for_all_outputs() -> None:
    before = realtime(is_one_pass=True)
    assert realtime_changes(before, realtime(ANOTHER_SINK, is_one_pass=True)) == []
    assert realtime_changes(before, realtime()) == [
        f"flow realtime: reads of streams: one for all outputs → {BRANCHES}"
    ]
    single = (("dead_letters: dead\n", ""), ("  b: {from: all, topic: b}\n", ""))
    assert realtime_changes(before, realtime(*single)) == []


def test_the_streams_of_a_union_keep_their_offsets_by_position() -> None:
    two = (
        'one: {topic: one, schema: "id INT"}',
        'one: {topic: one, schema: "id INT"}, two: {topic: two, schema: "id INT"}',
    )
    query = "select explode(array(id, 1)) as id from one"
    before, after = (
        realtime(two, (query, f"select id from {left} union all select id from {right}"))
        for left, right in (("one", "two"), ("two", "one"))
    )
    (found,) = realtime_changes(before, after)
    assert "one for sink a, two for sink a" in found
    assert "two for sink a, one for sink a" in found


def test_reads_that_are_not_known_before_spark_starts_are_kept() -> None:
    stored, unknown = realtime(), realtime(SWAPPED, is_one_pass=None)
    assert realtime_changes(stored, unknown) == []
    assert merge(stored, unknown) == stored
    assert realtime_changes(unknown, stored) == []
    assert merge(unknown, stored) == stored
    assert merge(stored, realtime(SWAPPED)) == realtime(SWAPPED)


def test_a_checkpoint_without_reads_has_none_for_checks_only() -> None:
    """In earlier versions a step that no output reads had no branch, and Spark refuses another number of reads."""
    unread = ("sinks:\n", '  odd: {sql: "select id from one", expect: {positive: {check: id > 0}}}\nsinks:\n')
    (found,) = realtime_changes(realtime(unread, is_one_pass=None), realtime(unread))
    assert found == f"flow realtime: reads of streams: {BRANCHES} → {BRANCHES}, one for checks of step odd"
