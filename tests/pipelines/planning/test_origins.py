"""Which queries keep the origin of their rows, decided by the same function for `validate` and for the run."""

from __future__ import annotations

import pytest

from odradek.pipelines.planning.origins import kept_origins


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("select id from a", ["a"]),
        ("select *, 'big' as kind from a where x > 1 union all select *, 'small' from a where x <= 1", ["a", "a"]),
        ("select *, 'eu' as region from A union all select v.*, 'us' from b v", ["a", "b"]),
        ("select a.*, t.name from a join t using (id) union all select b.*, 'x' from b", ["a", "b"]),
        ("select hash(*) as h from a", ["a"]),
        ("select to_json(struct(v.*)) as j from a v", None),
        ("select a.id, to_json(struct(a.*)) as j, t.name from a join t using (id)", None),
        ("select a.*, a.* from a", None),
        ("select id from a union all select to_json(struct(b.*)) from b join t using (id)", None),
        ("select /*+ REPARTITION(8) */ id from a", None),
        ("(select id from a) union all select id from b", None),
        ("from a select id", None),
    ],
)
def test_the_origin_is_kept_if_it_can_be_a_column_of_each_select(sql: str, kept: list[str] | None) -> None:
    assert kept_origins(sql, ["a", "b"]) == kept
