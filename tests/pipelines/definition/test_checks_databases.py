"""Problems that `validate` reports for databases and for modules that are not valid Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.planning.loading import load_yaml

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = 'sources: {readings: {topic: in, schema: "id BIGINT"}}\n'
VIEW = "views: {last: {from: readings, key: [id]}}\n"


def reported(folder: Path, text: str) -> str:
    (folder / "p.yml").write_text("pipeline: p\n" + text)
    return "\n".join(f"{each.place.line}: {each.text}" for each in load_yaml(str(folder / "p.yml"), {}).problems)


@pytest.mark.parametrize(
    "url", ["sqlite:///w.db", "postgresql://u:p@h/d", "postgresql+psycopg://h/d", "postgres://h/d"]
)
def test_urls_that_may_be_right_are_left_alone(tmp_path: Path, url: str) -> None:
    assert reported(tmp_path, f"warehouse: {url}\n{SOURCE}{VIEW}") == ""


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("w.db", "the warehouse is not a URL of SQLite or PostgreSQL; write sqlite:///file.db"),
        ("sqllite:///w.db", "PostgreSQL: it starts with sqllite://;"),
        ("postgress://h/d", "it starts with postgress://;"),
        ("mysql://h/d", "it starts with mysql://; write sqlite:///file.db"),
        ("jdbc:postgresql://h/d", "the warehouse is not a URL of SQLite or PostgreSQL"),
    ],
)
def test_urls_that_cannot_be_right_are_reported(tmp_path: Path, url: str, message: str) -> None:
    assert message in reported(tmp_path, f"warehouse: {url}\n{SOURCE}{VIEW}")


DECIMALS = 'sources: {s: {topic: in, schema: "id BIGINT, long DECIMAL(20,0), short DECIMAL(15,2)"}}\n'


@pytest.mark.parametrize(
    ("end", "is_refused"),
    [
        ("key: [long]", True),
        ("by: [long], aggregate: {n: count(*)}", True),
        ("changes: {key: [long], sequence: id}", True),
        ("key: [id], order_by: long", False),
        ("changes: {key: [id], sequence: long}", False),
    ],
)
def test_decimals_that_sqlite_takes_for_equal_are_reported(tmp_path: Path, end: str, is_refused: bool) -> None:
    view = f"views: {{v: {{from: s, {end}}}}}\n"
    assert "'v' compares long of type DECIMAL(20,0) in SQLite" in reported(tmp_path, DECIMALS + view)
    assert load_yaml(str(tmp_path / "p.yml"), {}).is_sound is not is_refused
    assert reported(tmp_path, DECIMALS + view.replace("long", "short")) == ""
    assert reported(tmp_path, f"warehouse: postgresql://h/d\n{DECIMALS}{view}") == ""


def test_the_keys_of_lakehouse_tables_are_not_those_of_sqlite(tmp_path: Path) -> None:
    sink = "sinks: {o: {from: s, lakehouse: {format: delta, path: x, key: [long]}}}\n"
    assert "SQLite" not in reported(tmp_path, DECIMALS + sink)


def test_a_table_and_a_source_have_urls_of_their_own(tmp_path: Path) -> None:
    problems = reported(
        tmp_path,
        """\
sources:
  pumps:
    jdbc: {url: "postgresql://me:hidden@h/d", table: pumps}
sinks:
  out: {from: pumps, table: out, url: "here"}
""",
    )
    url = "url of source 'pumps' is not a JDBC URL: it starts with postgresql://; write jdbc:postgresql://host/name"
    assert f"4: {url}" in problems
    assert "hidden" not in problems
    assert "6: url of sink 'out' is not a URL" in problems


def test_a_module_that_is_no_python_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own_broken.py").write_text("def go(frame):\n    return (\n")
    problems = reported(
        tmp_path,
        SOURCE + 'steps: {own: {from: [readings], python: "own_broken:go"}}\nsinks: {out: {from: own, topic: o}}',
    )
    assert "own_broken.py is not valid Python: '(' was never closed in line 2" in problems
