"""`odradek sql`: answers as a table, as JSON and as CSV; errors in a sentence."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.main import run
from odradek.cli.pipeline.sql import print_csv, print_table, query_context
from odradek.pipelines.spark.query_tables import Answer
from tests.commands import run_odradek

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_S = 110
ROWS: list[dict[str, Any]] = [
    {"id": 1, "mean": 1.5, "tags": ["a"], "note": 'say "hi", you'},
    {"id": 20, "mean": None, "tags": None, "note": None},
]


def answer() -> Answer:
    return Answer(list(ROWS[0]), iter(ROWS))


def test_a_table_has_its_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(answer(), 10)
    assert capsys.readouterr().out.splitlines() == [
        "id  mean  tags   note",
        ' 1   1.5  ["a"]  say "hi", you',
        "20",
    ]


def test_more_rows_than_are_shown_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(answer(), 1)
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert "only the first 1 rows are shown; --limit changes that" in shown.err


def test_csv_is_quoted_where_it_must_be(capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(answer().names, answer().rows)
    assert capsys.readouterr().out.splitlines() == [
        "id,mean,tags,note",
        '1,1.5,"[""a""]","say ""hi"", you"',
        "20,,,",
    ]


@pytest.mark.spark
@pytest.mark.soak
def test_a_topic_is_asked(bootstrap_server: str, topic: str) -> None:
    for value in ('{"id": 1, "pressure": 10}', '{"id": 2, "pressure": 30}'):
        assert run_odradek("produce", topic, "--value", value, "-b", bootstrap_server).code == 0
    query = f"select count(*) as records, avg(pressure) as mean from `{topic}`"
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "sql", query, "--infer", topic, "-b", bootstrap_server, "--format", "json"],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == '{"records":2,"mean":20.0}\n'
    assert "WARN" not in done.stderr


@pytest.mark.soak
def test_what_a_database_refuses_is_reported_in_a_line(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "w.db")) as connection:
        connection.execute("create table pumps (id integer, name text)")
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "sql", "select nam from pumps", "--warehouse", f"sqlite:///{tmp_path}/w.db"],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (reported,) = done.stderr.splitlines()
    assert reported.startswith("odradek: error: ")
    assert reported.endswith("no such column: nam")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["selec 1"], "the query, line 1, column 1: SQL must start with SELECT; did you mean 'select'?"),
        (["drop table t"], "SQL must start with SELECT"),
        (["select * from rigs-dead-letters where"], "put names with dashes in backticks"),
        (["select 1", "--schema", "t=id BIGNIT"], "--schema of t: "),
        (["select 1", "--warehouse", "here"], "'here' is not a database URL"),
        (["select 1", "--warehouse", "sqlite:///no-such-file.db"], "the file does not exist"),
        (["select 1", "--definition", "no.yml"], "the file cannot be read"),
    ],
)
def test_what_is_wrong_is_reported_before_spark_starts(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["sql", *arguments, "-b", "127.0.0.1:1"]) == 1
    reported = capsys.readouterr().err
    assert message in reported
    assert "starting Spark" not in reported


@pytest.mark.parametrize(
    ("has_definition", "option", "asked"),
    [
        (True, None, "defined:1"),
        (False, None, "variable:1"),
        (True, "option:1", "option:1"),
        (False, "option:1", "option:1"),
    ],
)
def test_the_brokers_of_a_definition_come_before_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_definition: bool, option: str | None, asked: str
) -> None:
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "variable:1")
    file = tmp_path / "p.yml"
    file.write_text(
        'pipeline: p\nbootstrap_servers: "defined:1"\nsources: {a: {topic: a, schema: "id INT"}}\n'
        "sinks: {b: {from: a, topic: b}}\n"
    )
    found = query_context(str(file) if has_definition else None, None, option, (), (), ())
    assert found.pipeline.bootstrap_servers == asked
