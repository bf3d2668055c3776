"""Definitions that the old way accepts, whose results depend on the batches, on a split or on luck. The rules refuse
each of them, by its code and at its line."""

from __future__ import annotations

from dataclasses import dataclass

WATERMARK = "watermark: {column: at, delay: 5 minutes}"
SCHEMA = 'schema: "id BIGINT, k STRING, n BIGINT, d DOUBLE, s STRUCT<y: STRING>, at TIMESTAMP"'
SOURCES = f"""pipeline: wrong
sources:
  a: {{topic: a, {SCHEMA}, {WATERMARK}}}
  b: {{topic: b, {SCHEMA}, {WATERMARK}}}
  both: {{topics: [a, b], {SCHEMA}}}
"""
INTO_A_TABLE = 'steps:\n  s: {{sql: "{}"}}\nsinks: {{o: {{from: s, table: o, key: [{}]}}}}\n'
INTO_A_TOPIC = 'steps:\n  s: {{sql: "{}"}}\nsinks: {{o: {{from: s, topic: o}}}}\n'


@dataclass(frozen=True)
class Wrong:
    """A definition over the sources above, and the code and line of what the rules say."""

    text: str
    code: str
    line: int = 1


def merging(groups: str, key: str) -> Wrong:
    """Groups whose key is the same for several of them: which of them is in the table depends on the batches."""
    query = f"select {key} as g, count(*) as c from a group by {groups}"
    return Wrong(INTO_A_TABLE.format(query, "g"), "OP012", 3)


def in_a_topic(query: str, code: str) -> Wrong:
    return Wrong(INTO_A_TOPIC.format(query), code, 2)


WRONG = {
    "last row of a union of two topics": Wrong(
        INTO_A_TABLE.format("select k, n from a union all select k, n from b", "k"), "OP014", 3
    ),
    "last row of two topics": Wrong("sinks: {o: {from: both, table: o, key: [k]}}\n", "OP014"),
    "groups of times by their seconds": merging("at", "cast(at as bigint)"),
    "groups of times by unix_timestamp": merging("at", "unix_timestamp(at)"),
    "groups of texts by their numbers": merging("k", "cast(k as int)"),
    "groups of texts by their times": merging("k", "to_timestamp(k)"),
    "groups of doubles by floats": merging("d", "cast(d as float)"),
    "groups of two texts by both as one": merging("k, s.y", "concat(k, s.y)"),
    "groups by a hash": merging("k, id", "hash(k, id)"),
    "groups of null and of a text": merging("k", "coalesce(k, 'x')"),
    "a join that keeps all rows": in_a_topic("select a.id, b.n from a join b on a.k = b.k", "OP006"),
    "randomness by java_method": in_a_topic("select java_method('java.util.UUID', 'randomUUID') as u from a", "OP015"),
    "randomness by reflect": in_a_topic("select reflect('java.util.UUID', 'randomUUID') as u from a", "OP015"),
    "an aggregate that depends on the split": in_a_topic(
        "select window.end as until, approx_top_k(k, 2) as t from a group by window(at, '1 minute')", "OP015"
    ),
}
