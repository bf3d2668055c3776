"""`odradek pipeline checkpoints | reset | backfill | rebuild` as far as they go without Spark."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.cli.pipeline.reset import parse_position, parse_range, position_text
from odradek.conventions.failures import Failure
from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.locks import held
from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.spark.reading.sources import Range

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.pipelines.definition.model import Pipeline
    from tests.commands import Run

DEFINITION = """
    pipeline: p
    checkpoints: checkpoints
    warehouse: sqlite:///w.db
    sources: {rigs: {topic: "rigs", schema: "id BIGINT, at TIMESTAMP"}}
    steps: {good: {sql: "select id, at from rigs"}}
    sinks:
      out: {from: good, topic: out}
      archive: {from: good, files: {path: archive, format: json}}
      added: {from: good, table: added}
    views:
      last: {from: good, key: [id], order_by: at}
      totals: {from: good, by: [id], aggregate: {events: count(*)}}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "p.yml"
    path.write_text(textwrap.dedent(DEFINITION))
    return str(path)


@pytest.fixture
def pipeline(file: str) -> Pipeline:
    return load_yaml(file, {}).require()


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Checkpoints of all flows, as Spark writes them, and what the file sink has written."""
    folder = tmp_path / "checkpoints"
    for flow in ("rigs", "rigs-views", "files-archive", "view-totals"):
        (folder / flow / "offsets").mkdir(parents=True)
        (folder / flow / "metadata").write_text(json.dumps({"id": flow}))
        (folder / flow / "offsets" / "7").write_text('v1\n{"batchTimestampMs":1000}\n{"rigs":{"0":12,"1":3}}')
    (tmp_path / "archive" / "_spark_metadata").mkdir(parents=True)
    return folder


PLACES = {
    "earliest": Start(StartAt.EARLIEST),
    "latest": Start(StartAt.LATEST),
    "1767225600000": Start(StartAt.TIME, 1767225600000),
    "2026-01-31T12:00:30Z": Start(StartAt.TIME, 1769860830000),
    "2026-01-31 12:00:30+00:00": Start(StartAt.TIME, 1769860830000),
    "rigs:1:900": Start(StartAt.OFFSETS, offsets={"rigs": {1: 900}}),
}


@pytest.mark.parametrize(("text", "start"), PLACES.items())
def test_places_are_read_as_people_write_them(pipeline: Pipeline, text: str, start: Start) -> None:
    assert parse_position([text], pipeline) == start
    assert parse_position([position_text(start)], pipeline) == start


def test_offsets_are_gathered(pipeline: Pipeline) -> None:
    assert parse_position(["rigs:0:1", "rigs:1:2"], pipeline).offsets == {"rigs": {0: 1, 1: 2}}


@pytest.mark.parametrize(
    ("texts", "reported"),
    [
        (["yesterday"], "is no position in a topic"),
        (["wells:0:1"], "p does not read topic wells; it reads rigs"),
        (["rigs:0:1", "latest"], "must all be TOPIC:PARTITION:OFFSET"),
        (["rigs:0:99999999999999999999"], "is no position in a topic"),
    ],
)
def test_what_is_no_place_is_reported(pipeline: Pipeline, texts: list[str], reported: str) -> None:
    with pytest.raises(Failure, match=reported):
        parse_position(texts, pipeline)


@pytest.mark.parametrize(
    ("first", "last", "start", "end"),
    [
        (["rigs:0:5"], [], {0: 5}, {0: -1}),
        (["earliest"], ["rigs:1:9"], {1: -2}, {1: 9}),
        (["rigs:0:5", "rigs:2:1"], ["rigs:0:6"], {0: 5, 2: 1}, {0: 6, 2: -1}),
    ],
)
def test_a_range_of_offsets_is_of_the_partitions_that_are_named(
    pipeline: Pipeline, first: list[str], last: list[str], start: dict[int, int], end: dict[int, int]
) -> None:
    found = parse_range(first, last, pipeline)
    assert found.only_named
    assert found.start is not None
    assert found.end is not None
    assert (found.start.offsets, found.end.offsets) == ({"rigs": start}, {"rigs": end})


def test_a_range_of_times_is_of_all_partitions(pipeline: Pipeline) -> None:
    found = parse_range(["1000"], ["2000"], pipeline)
    assert found == Range(Start(StartAt.TIME, 1000), Start(StartAt.TIME, 2000))


def test_checkpoints_show_how_far_each_flow_is(offline: Run, file: str, begun: Path) -> None:
    shown = offline("pipeline", "checkpoints", file)
    assert shown.code == 0
    assert str(begun) in shown.output
    rows = [line.split() for line in shown.output.splitlines()]
    assert ["rigs", "7", "no"] in [row[:3] for row in rows]
    assert sum(row[:3] == ["rigs", "1", "3"] for row in rows) == 4
    (found,) = [
        row for row in offline("pipeline", "checkpoints", file, "--format", "json").rows if row["flow"] == "rigs"
    ]
    assert found["positions"] == {"rigs": {"0": 12, "1": 3}}


def test_a_reset_says_what_follows_and_does_it(offline: Run, file: str, begun: Path, tmp_path: Path) -> None:
    done = offline("pipeline", "reset", file, "--to", "2026-01-31T12:00Z", "--yes")
    assert done.code == 0, done.errors
    for reported in (
        "topic out: replayed records are written again",
        "table added: replayed rows are appended again",
        "files archive: the folder is renamed",
        "view last: replayed rows replace those of the same key that have no greater at",
        "view totals: its groups have only the records after the start",
    ):
        assert reported in done.errors
    assert "begins at 2026-01-31T12:00:00.000Z with its next run" in done.output
    assert not (tmp_path / "archive").exists()
    (aside,) = tmp_path.glob("archive.before-*")
    assert (aside / "_spark_metadata").is_dir()
    assert sorted(path.name for path in begun.iterdir()) == ["checkpoint.lock", "start.json"]


def test_one_flow_is_forgotten_alone(offline: Run, file: str, begun: Path, tmp_path: Path) -> None:
    assert offline("pipeline", "reset", file, "--flow", "view-totals", "--yes").code == 0
    assert (begun / "rigs").exists()
    assert not (begun / "view-totals").exists()
    assert (tmp_path / "archive").exists()
    unknown = offline("pipeline", "reset", file, "--flow", "odd", "--yes")
    assert "p has no flow odd; it has files-archive, rigs, rigs-views, view-totals" in unknown.errors


def test_a_start_is_that_of_the_flow_that_was_reset(offline: Run, file: str, begun: Path) -> None:
    done = offline("pipeline", "reset", file, "--flow", "view-totals", "--to", "latest", "--yes")
    assert "p, flow view-totals, begins at latest with its next run" in done.output
    shown = offline("pipeline", "checkpoints", file).output
    assert "flow view-totals begins at latest" in shown
    assert "flow rigs begins" not in shown


def test_what_cannot_be_set_aside_is_reported_before_anything_is_forgotten(
    offline: Run, file: str, begun: Path
) -> None:
    definition = begun.parent / "p.yml"
    definition.write_text(definition.read_text().replace("path: archive", "path: hdfs://host/archive"))
    refused = offline("pipeline", "reset", file, "--yes")
    assert refused.code == 1
    assert "hdfs://host/archive is not local and cannot be renamed" in refused.errors
    assert {"rigs", "rigs-views", "files-archive", "view-totals"} <= {path.name for path in begun.iterdir()}


def test_none_of_several_is_reset_where_one_cannot_be(offline: Run, file: str, begun: Path) -> None:
    other = begun.parent / "q.yml"
    other.write_text(textwrap.dedent(DEFINITION).replace("pipeline: p", "pipeline: q").replace("rigs", "wells"))
    refused = offline("pipeline", "start", file, str(other), "--from", "rigs:0:1", "--yes")
    assert "q does not read topic rigs" in refused.errors
    assert (begun / "rigs").exists()


def test_a_reset_asks_first(offline: Run, file: str, begun: Path) -> None:
    asked = offline("pipeline", "reset", file, stdin="n\n")
    assert asked.code == 1
    assert "nothing was changed" in asked.errors
    assert (begun / "rigs").exists()
    assert offline("pipeline", "reset", file, stdin="y\n").code == 0
    assert not (begun / "rigs").exists()


def test_a_pipeline_at_work_is_not_reset(offline: Run, file: str, begun: Path) -> None:
    with held(begun / "checkpoint.lock", "pid 12"):
        refused = offline("pipeline", "reset", file, "--yes")
    assert refused.code == 1
    assert "p is running (pid 12); stop it first" in refused.errors
    assert (begun / "rigs").exists()


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("backfill", "--from", "latest"), "the range is empty"),
        (("backfill", "--from", "rigs:0:1", "--to", "-1h"), "times or offsets, not both"),
        (("backfill", "--from", "earliest", "--only", "odd"), "p has no sink or view odd"),
        (("backfill", "--from", "earliest", "--only", "totals"), "view totals needs the whole log"),
        (("rebuild", "odd"), "p has no view or table sink odd; it has added, last, totals"),
        (("run", "--from", "odd"), "is no position in a topic"),
    ],
)
def test_what_cannot_be_done_is_reported_before_spark_starts(
    offline: Run, file: str, arguments: tuple[str, ...], reported: str
) -> None:
    command, *rest = arguments
    ran = offline("pipeline", command, file, *rest)
    assert ran.code == 1
    assert reported in ran.errors
