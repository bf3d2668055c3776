"""The order of arrival, by which a table without `order_by` keeps a row of each key."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for
from tests.pipelines.planning.test_query_checks import HEAD
from tests.pipelines.planning.test_stream_checks import analysed_errors

STATIC_TOPIC = '  u: {topic: u, schema: "id BIGINT, name STRING", stream: false}\n'
TABLE = "warehouse: sqlite:///w.db\nsinks: {o: {from: s, table: o, key: [id]}}\n"


@pytest.mark.parametrize(
    ("steps", "is_refused"),
    [
        ("s: {sql: 'select a.id, name from a join u using (id)'}", False),
        ("v: {sql: 'select id, name from u'}, s: {sql: 'select a.id, name from a join v using (id)'}", False),
        ("s: {sql: 'select id, x from a where id in (select id from u)'}", False),
        ("s: {from: a, join: {table: u, on: [id]}}", False),
        ("s: {sql: 'select a.id, name from a join (select * from u) u using (id)'}", True),
    ],
)
def test_rows_joined_with_a_static_topic_keep_the_offset_of_the_stream(steps: str, is_refused: bool) -> None:
    lines = reported_for(f"steps: {{{steps}}}\n{TABLE}", head=HEAD + STATIC_TOPIC)
    assert [line for line in lines if "error" in line and "are not in the order of their arrival" not in line] == []
    assert bool([line for line in lines if "are not in the order of their arrival" in line]) is is_refused, lines


SPLIT = "select *, 'big' as kind from a where x > 1 union all select *, 'small' as kind from a where x <= 1"


def arrival_errors(steps: str, end: str = TABLE, head: str = HEAD) -> list[str]:
    """What is said of the order of rows; other errors fail the test."""
    lines = [line for line in reported_for(f"steps:\n{steps}{end}", head=head) if line.startswith("error")]
    found = [line for line in lines if "are not in the order of their arrival; " in line]
    assert found == lines, lines
    return found


def sql_step(sql: str) -> str:
    return f'  s: {{sql: "{sql}"}}\n'


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        (SPLIT, False),
        ("select a.*, t.name from a join t using (id) union all select b.*, 'b' from b", False),
        ("select a.id, to_json(struct(a.*)) as j, t.name from a join t on a.id = t.id", True),
        ("select id, to_json(struct(v.*)) as j from a v", False),
        ("select id, to_json(struct(v.*)) as j from a v union all select id, 'b' from b", True),
    ],
)
def test_rows_have_an_offset_if_it_can_be_added_to_the_query(sql: str, is_refused: bool) -> None:
    assert len(arrival_errors(sql_step(sql))) == is_refused
    assert arrival_errors(sql_step(sql), TABLE.replace("[id]", "[id], order_by: id")) == []


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select /*+ REPARTITION(8) */ id, x from a", True),
        ("select /*+ rebalance */ id, x from a", True),
        ("select /*+ REPARTITION_BY_RANGE(3, id) */ id, x from a", True),
        ("select /*+ COALESCE(1) */ id, x from a", False),
        ("select id, (select max(t.name) from t where t.id = a.id) as name from a", True),
        ("select v.id, (select max(name) from t where id = v.id) as name from a v", True),
        ("select id, (select max(name) from t where id = x) as name from a", True),
        ("select id, x from a where x > (select min(id) from t where name = 'low')", False),
        ("select id, (select max(m) from (select id as m from t) u where u.m > 3) as most from a", False),
    ],
)
def test_rows_that_a_query_divides_anew_or_joins_are_not_in_order(sql: str, is_refused: bool) -> None:
    assert len(arrival_errors(sql_step(sql))) == is_refused
    assert arrival_errors(sql_step(sql), TABLE.replace("[id]", "[id], order_by: id")) == []


@pytest.mark.parametrize("clause", ["cluster by x", "distribute by x", "sort by x"])
def test_a_stream_is_not_sorted_or_distributed(clause: str) -> None:
    lines = reported_for(f"steps:\n{sql_step(f'select id, x from a {clause}')}{TABLE}", head=HEAD)
    assert [line for line in lines if line.startswith("error: step 's' sorts a stream")], lines


@pytest.mark.parametrize(
    ("mixed", "is_refused"),
    [
        ('u: {sql: "select id, x from a where x > 1 union all select id, x from a where x <= 1"}', True),
        ("u: {from: a, join: {table: t, on: [id]}}", True),
        ("u: {from: a, deduplicate: {key: [x]}}", True),
        ("u: {from: a, deduplicate: {key: [id]}}", False),
        ("v: {from: a, join: {table: t, on: [id]}}, u: {sql: 'select * from v where x > 1'}", True),
        ("u: {sql: 'select id, explode(array(x, 1)) as x from a'}", False),
    ],
)
def test_mixed_rows_that_lose_their_offset_are_not_in_order(mixed: str, is_refused: bool) -> None:
    without_offset = "s: {sql: 'with c as (select id, x from u) select id, x from c'}"
    lines = reported_for(f"steps: {{{mixed}, {without_offset}}}\n{TABLE}", head=HEAD)
    found = [line for line in lines if line.startswith("error")]
    assert ["are not in the order of their arrival; " in line for line in found] == [True] * is_refused, lines
    with_offset = without_offset.replace("with c as (select id, x from u) select id, x from c", "select id, x from u")
    lines = reported_for(f"steps: {{{mixed}, {with_offset}}}\n{TABLE}", head=HEAD)
    assert [line for line in lines if line.startswith("error")] == []


@pytest.mark.parametrize(
    ("flags", "is_refused"),
    [
        ({"keeps_state": False}, False),
        ({"keeps_state": True}, True),
        ({"keeps_state": False, "mixes_rows": True}, True),
    ],
)
def test_a_function_that_keeps_state_or_mixes_rows_loses_their_order(flags: dict[str, bool], is_refused: bool) -> None:
    found = analysed_errors("{s: {from: [a], python: 'own:some', schema: 'id BIGINT'}}", **flags)
    assert ["are not in the order of their arrival" in line for line in found] == [True] * is_refused, found


STATE = "  v: {from: a, state: {key: [ID], processor: 'json:JSONDecoder'}, schema: 'id BIGINT, k BIGINT'}\n"
UNIQUE = (
    "  u: {sql: 'with q as (select * from a) select id, x as k from q'}\n  v: {from: u, deduplicate: {key: [id]}}\n"
)


@pytest.mark.parametrize("before", [STATE, UNIQUE])
@pytest.mark.parametrize(
    ("sql", "key", "is_refused"),
    [
        ("select * from v", "[k]", True),
        ("select * from v", "[id]", False),
        ("select * from v", "[k, id]", False),
        ("select v.id as k, k as id from v", "[k]", False),
        ("select id as k, k as id from v", "[id]", True),
        ("select * except (k), k + 1 as k from v", "[id, k]", False),
        ("select k, abs(id) as id from v", "[id]", True),
        ("with w as (select id, k from v) select id, k from w", "[id]", False),
        ("with w as (select k as id from v) select id from w", "[id]", True),
    ],
)
def test_rows_of_a_state_are_in_order_for_its_own_key(before: str, sql: str, key: str, is_refused: bool) -> None:
    end = TABLE.replace("[id]", key)
    assert len(arrival_errors(before + sql_step(sql), end)) == is_refused
    assert arrival_errors(before + sql_step(sql), end.replace("]}", "], order_by: id}")) == []


@pytest.mark.parametrize(
    ("options", "is_refused"),
    [
        ("", True),
        (", options: {maxFilesPerTrigger: 2}", True),
        (", options: {maxFilesPerTrigger: 1}", False),
        (", options: {maxFilesPerTrigger: 1, latestFirst: true}", True),
    ],
)
@pytest.mark.parametrize("end", [TABLE, TABLE.replace("sinks", "views").replace("table: o, ", "")])
def test_rows_of_several_files_in_a_batch_are_not_in_order(end: str, options: str, is_refused: bool) -> None:
    head = f'{HEAD}  f: {{files: {{path: in, format: json{options}}}, stream: true, schema: "id BIGINT, x DOUBLE"}}\n'
    step = sql_step("select id, x from f")
    found = arrival_errors(step, end, head)
    assert ["source 'f', which reads files, are not in" in line for line in found] == [True] * is_refused, found
    assert arrival_errors(step, end.replace("[id]", "[id], order_by: x"), head) == []
    groups = sql_step("select id, max(x) as x from f group by id")
    assert arrival_errors(groups, end, head) == []


@pytest.mark.parametrize(
    ("step", "end", "is_warned"),
    [
        ("{sql: 'select a.id, a.at, y from a join b on a.id = b.id'}", "key: [id], order_by: at", True),
        ("{sql: with q as (select * from a) select * from q}", "key: [id], order_by: at", False),
        ("{sql: 'select id, at from a union all select id, at from b'}", "key: [id], order_by: at", False),
        ("{sql: 'select distinct id, at, x from a'}", "key: [id], order_by: x", True),
        ("{sql: 'select distinct id, at, x from a'}", "key: [id, at], order_by: x", False),
        ("{from: a, by: [id], window: {column: at, gap: 1 minute}, aggregate: {n: count(*)}}",
         "key: [id], order_by: n", True),
        ("{from: a, by: [id], window: {column: at, gap: 1 minute}, aggregate: {n: count(*)}}",
         "key: [id], order_by: window_start", False),
    ],
)  # fmt: skip
def test_an_order_with_equal_values_is_a_warning_if_rows_have_no_other(step: str, end: str, is_warned: bool) -> None:
    lines = reported_for(
        f"steps:\n  s: {step}\nwarehouse: sqlite:///w.db\nviews: {{o: {{from: s, {end}}}}}\n", head=HEAD
    )
    assert [line for line in lines if line.startswith("error")] == []
    found = [line for line in lines if "depends on the batches" in line]
    assert [line.startswith("warning: 'o' keeps the row of each id") for line in found] == [True] * is_warned, lines


FILES = HEAD + (
    "  f: {files: {path: in, format: json%s}, stream: true, schema: 'id BIGINT, x DOUBLE'}\n"
    "  timed: {files: {path: in, format: json}, stream: true, schema: 'id BIGINT, at TIMESTAMP', "
    "watermark: {column: at, delay: 1 minute}}\n"
)
DISTINCT = "select distinct id, at from a where at is not null"
OTHER_STATE = "q: {from: a, state: {key: [x], processor: 'json:JSONDecoder'}, schema: 'id BIGINT, k BIGINT'}"
UNITED = "j: {sql: 'select id, x from a where x > 1 union all select id, x from a where x <= 1'}"
OF_FILES = "source 'f', which reads files,"
GROUPS = "g: {sql: 'select id, count(*) as x from a group by id'}"
STATE_SCHEMA = "schema: 'id BIGINT, x DOUBLE'"
WINDOWS = "{from: a, by: [id], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}"


@pytest.mark.parametrize(
    ("steps", "unordered"),
    [
        ("s: {from: f, deduplicate: {key: [id]}}", "source 'f', which reads files,"),
        ("s: {from: timed, deduplicate: {key: [id], within: 1 minute}}", "source 'timed', which reads files,"),
        ("q: {sql: 'select id, x + 1 as y from f'}, s: {from: q, deduplicate: {key: [id]}}", "source 'f', which reads"),
        ("s: {from: f, deduplicate: {key: [X, id]}}", None),
        ("q: {sql: 'select id from f'}, s: {from: q, deduplicate: {key: [id]}}", None),
        ("s: {from: a, deduplicate: {key: [id]}}", None),
        ("q: {sql: 'select id, x from a union all select id, y from b'}, s: {from: q, deduplicate: {key: [id]}}", None),
        ("q: {sql: 'select id, explode(array(x, 1)) as e from a'}, s: {from: q, deduplicate: {key: [id]}}", None),
        ("q: {from: a, join: {table: t, on: [id]}}, s: {from: q, deduplicate: {key: [id]}}", None),
        ("q: {sql: 'select a.id, x, y from a join b using (id)'}, s: {from: q, deduplicate: {key: [id]}}", "step 'q'"),
        ("q: {sql: 'select a.id, x, y from a join b using (id)'}, s: {from: q, deduplicate: {key: [id, x, y]}}", None),
        (f"q: {WINDOWS}, s: {{from: q, deduplicate: {{key: [id]}}}}", "step 'q'"),
        (f"q: {WINDOWS}, s: {{from: q, deduplicate: {{key: [id, window_start, window_end, n]}}}}", None),
        (f"q: {{sql: '{DISTINCT}'}}, s: {{from: q, deduplicate: {{key: [id]}}}}", "step 'q'"),
        ("q: {from: a, deduplicate: {key: [id, x]}}, s: {from: q, deduplicate: {key: [id]}}", None),
        (f"{OTHER_STATE}, s: {{from: q, deduplicate: {{key: [id]}}}}", "step 'q'"),
    ],
)  # fmt: skip
def test_the_first_row_is_known_if_rows_are_in_the_order_of_their_arrival(steps: str, unordered: str | None) -> None:
    lines = reported_for(f"steps: {{{steps}}}\nsinks: {{o: {{from: s, topic: o}}}}\n", head=FILES % "")
    found = [line for line in lines if line.startswith("error")]
    assert len(found) == (unordered is not None), lines
    assert unordered is None or f"that arrived first, and the rows of {unordered}" in found[0]


def test_files_that_are_read_one_after_the_other_have_a_first_row() -> None:
    head = FILES % ", options: {maxFilesPerTrigger: 1}"
    lines = reported_for(
        "steps: {s: {from: f, deduplicate: {key: [id]}}}\nsinks: {o: {from: s, topic: o}}\n", head=head
    )
    assert [line for line in lines if line.startswith("error")] == []


@pytest.mark.parametrize(
    ("step", "unordered"),
    [
        ("{sql: 'select * from f'}", "source 'f', which reads files,"),
        ("{sql: 'select a.id, x, y from a join b using (id)'}", "step 's'"),
        ("{sql: 'select id, x from a'}", None),
        ("{sql: 'select id, explode(array(x, 1)) as x from a'}", None),
    ],
)
@pytest.mark.parametrize("end", ["sinks: {o: {from: s, table: o, changes: %s}}", "views: {o: {from: s, changes: %s}}"])
def test_equal_changes_in_no_order_are_a_warning(end: str, step: str, unordered: str | None) -> None:
    text = f"steps: {{s: {step}}}\nwarehouse: sqlite:///w.db\n{end % '{key: [id], sequence: x}'}\n"
    lines = reported_for(text, head=FILES % "")
    assert [line for line in lines if line.startswith("error")] == []
    found = [line for line in lines if line.startswith("warning: of changes with equal id, x 'o' keeps the one")]
    assert [f"and the rows of {unordered} are not" in line for line in found] == [True] * (unordered is not None), lines


@pytest.mark.parametrize(
    ("steps", "unordered"),
    [
        ("s: {sql: 'select id, x from a where x > 1 union all select id, x from a where x <= 1'}", "step 's'"),
        ("q: {from: a, deduplicate: {key: [x]}}, s: {sql: 'select * from q'}", "step 'q'"),
        ("s: {from: a, join: {table: t, on: [id]}}", "step 's'"),
        ("s: {sql: 'select * from f'}", "source 'f', which reads files,"),
        ("s: {from: a, deduplicate: {key: [id]}}", None),
        ("s: {sql: 'select id, x from a where x > 1'}", None),
        ("s: {from: a, by: [id], aggregate: {x: count(*)}}", None),
        (f"{UNITED}, s: {{sql: 'select id, count(*) as x from j group by id'}}", None),
        (f"{UNITED}, g: {{sql: 'select id, count(*) as x from j group by id'}}, s: {{sql: 'select * from g'}}", None),
        ("s: {from: f, by: [id], aggregate: {x: count(*)}}", None),
        (f"{UNITED}, s: {{from: j, state: {{key: [id], processor: 'json:JSONDecoder'}}, {STATE_SCHEMA}}}", None),
        (f"{UNITED}, s: {{from: j, state: {{key: [x], processor: 'json:JSONDecoder'}}, {STATE_SCHEMA}}}", "step 's'"),
        (f"{UNITED}, s: {{sql: 'select * from j'}}", "step 'j'"),
        (f"{GROUPS}, s: {{sql: 'select id, x from f union all select id, x from g'}}", OF_FILES),
    ],
)
def test_tombstones_of_rows_in_no_order_are_a_warning(steps: str, unordered: str | None) -> None:
    sink = "sinks: {o: {from: s, topic: o, key: ID, deletes: x < 1, mode: update}}\n"
    lines = reported_for(f"steps: {{{steps}}}\n{sink}", head=FILES % "")
    assert [line for line in lines if line.startswith("error")] == []
    found = [line for line in lines if line.startswith("warning: sink 'o' writes tombstones")]
    assert [f"the rows of {unordered} are not in" in line for line in found] == [True] * (unordered is not None), lines
    lines = reported_for(f"steps: {{{steps}}}\n{sink.replace(', deletes: x < 1', '')}", head=FILES % "")
    assert not [line for line in lines if "writes tombstones" in line]
