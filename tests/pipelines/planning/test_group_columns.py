"""Which expressions of SQL tell groups apart, so that a key of them has one group."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for
from tests.pipelines.planning.test_query_checks import HEAD

HOURS = "select window, id, count(*) n from a group by window(at, '1 hour'), id"
NAMED = "select window(at, '1 hour') as w, id, count(*) n from a group by window(at, '1 hour'), id"


def refusals(end: str, *queries: str) -> list[str]:
    """The errors of a table and of a view behind queries, of which each reads the one before as `q1`, `q2` …"""
    steps = "".join(f'  q{at}: {{sql: "{sql}"}}\n' for at, sql in enumerate(queries, 1))
    definition = f"steps:\n{steps}warehouse: sqlite:///w.db\n"
    found = []
    for kind in ("sinks: {o: {from: q%d, table: o, %s}}\n", "views: {o: {from: q%d, %s}}\n"):
        lines = reported_for(definition + kind % (len(queries), end), head=HEAD)
        found.append([line for line in lines if line.startswith("error")])
    assert len(found[0]) == len(found[1]), found
    return found[0]


@pytest.mark.parametrize(
    ("key", "queries"),
    [
        ("[s, id]", (HOURS, "select window.start as s, window.end as e, id, n from q1")),
        ("[s, e, id]", (HOURS, "select window.start as s, window.end as e, id, n from q1")),
        ("[s, id]", (NAMED, "select w.start as s, id, n from q1")),
        ("[s, id]", (f"select g.window.start as s, id, n from ({HOURS}) g",)),
        ("[e, id]", (HOURS, "select *, window as w from q1", "select q2.w.end as e, id, n from q2")),
        ("[e, id, k]", (f"select 1 as k, * from ({HOURS}) g union all select 2, * from ({HOURS}) h",
                        "select window.end as e, id, n, k from q1")),
    ],
)  # fmt: skip
def test_each_end_of_a_window_that_an_earlier_step_selects_tells_windows_apart(
    key: str, queries: tuple[str, ...]
) -> None:
    assert refusals(f"key: {key}", *queries) == []


def test_a_field_of_another_struct_does_not_tell_its_groups_apart() -> None:
    struct = f"select named_struct('start', id, 'w', window) as h, n from ({HOURS}) g"
    (refused,) = refusals("key: [s]", struct, "select h.start as s, n from q1")
    assert "tells id, window apart" in refused
