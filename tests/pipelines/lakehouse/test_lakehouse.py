"""Delta and Iceberg tables: each batch once, rows that replace those of their key, and change data."""

from __future__ import annotations

import dataclasses
import json
import random
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.model import Changes, LakehouseTarget, Sink
from odradek.pipelines.definition.vocabulary import LakehouseFormat, SinkMode
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.sinks import lakehouse
from odradek.pipelines.spark.sinks.lakehouse import table_of, write_lakehouse
from odradek.pipelines.spark.sinks.warehouse import BatchNumber
from odradek.pipelines.spark.writing.topics import Cluster
from tests.pipelines.spark.change_model import Change, batches_of, current_rows, history_rows
from tests.pipelines.spark.stage import catch_up

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.testing import RunningBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.lakehouse,
    pytest.mark.timeout(900),
    # PySpark 4.1.1 leaves the sockets of collected rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed.*socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FORMATS = list(LakehouseFormat)


@dataclasses.dataclass(frozen=True)
class Given:
    """The rows of a batch by any name."""

    frame: DataFrame

    def rows(self, _name: str) -> DataFrame:
        return self.frame


def frame_of(session: SparkSession, changes: Sequence[Change]) -> DataFrame:
    """Rows in the order of their arrival, which is the offset of their record; a negative value is a deletion."""
    rows = [
        (each.id, each.region, each.lsn, -1 if each.is_deleted else each.value, number)
        for number, each in enumerate(changes)
    ]
    frame = session.createDataFrame(rows, "id BIGINT, region STRING, lsn BIGINT, value BIGINT, offset BIGINT")
    origin = "struct('in' as topic, 0 as partition, offset) as __origin"
    return frame.selectExpr("id", "region", "lsn", "value", origin)


def target_of(wanted: LakehouseFormat, **rest: Any) -> LakehouseTarget:
    name = f"t{uuid.uuid4().hex[:8]}"
    if wanted is LakehouseFormat.DELTA:
        return LakehouseTarget(wanted, path=f"tables/{name}", **rest)
    return LakehouseTarget(wanted, table=f"lake.db.{name}", **rest)


def contents(session: SparkSession, target: LakehouseTarget, pipeline: Pipeline, *names: str) -> set[tuple[Any, ...]]:
    rows = session.table(table_of(session, target, pipeline).sql_name)
    found = [tuple(row) for row in rows.select(*(names or rows.columns)).collect()]
    assert len(found) == len(set(found))
    return set(found)


def some_changes(seed: int, count: int = 40) -> list[Change]:
    chance = random.Random(seed)
    return [
        Change(chance.randint(1, 2), chance.choice("ns"), chance.randint(0, 12), number, chance.random() < 0.4)
        for number in range(count)
    ]


def write(
    session: SparkSession, sink: Sink, pipeline: Pipeline, batches: Sequence[Sequence[Change]], first: int = 0
) -> None:
    assert isinstance(sink.target, LakehouseTarget)
    numbered = list(enumerate(batches, first))
    for number, batch in [*numbered, numbered[-1]]:  # the last one again, as a replay would
        write_lakehouse(sink, sink.target, Given(frame_of(session, batch)), pipeline, BatchNumber("query", number))


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("wanted", FORMATS)
def test_change_data_gives_the_table_of_the_model(
    lake: SparkSession, pipeline: Pipeline, wanted: LakehouseFormat, history: bool
) -> None:
    changes = some_changes(seed=1)
    target = target_of(wanted, changes=Changes(("id", "region"), "lsn", "value < 0", history))
    sink = Sink("s", "rows", target, SinkMode.APPEND)
    write(lake, sink, pipeline, batches_of(changes, [9, 25]))
    assert contents(lake, target, pipeline) == (history_rows if history else current_rows)(changes)


@pytest.mark.parametrize("wanted", FORMATS)
def test_a_batch_of_which_only_the_deletions_were_written_is_completed(
    lake: SparkSession, pipeline: Pipeline, wanted: LakehouseFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(wanted, changes=Changes(("id", "region"), "lsn", "value < 0", keeps_history=True))
    sink = Sink("s", "rows", target, SinkMode.APPEND)
    first, second = batches_of(some_changes(seed=2), [20])
    write(lake, sink, pipeline, [first])

    def crash(*_arguments: Any) -> str:
        raise RuntimeError("the driver is gone")

    with monkeypatch.context() as patched:
        patched.setattr(lakehouse, "history_merge", crash)
        with pytest.raises(RuntimeError, match="the driver is gone"):
            write(lake, sink, pipeline, [second], 1)
    write(lake, sink, pipeline, [second], 1)
    assert contents(lake, target, pipeline) == history_rows([*first, *second])


def test_a_pipeline_writes_each_batch_once(
    lake: SparkSession, pipeline: Pipeline, tmp_path: Path, odradek_session_broker: RunningBroker
) -> None:
    """The first batch is replayed: its commit is removed from the checkpoint, as if the process had died before it."""
    sinks = {each.name: each.target for each in pipeline.sinks}
    cluster = Cluster(odradek_session_broker.bootstrap_servers, {})

    def run(rows: list[dict[str, Any]], name: str) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.json").write_text("\n".join(map(json.dumps, rows)))
        catch_up(StandardEngine(lake, pipeline, cluster))

    run([{"id": 1, "region": "n", "lsn": 1, "value": 1}, {"id": 2, "region": "s", "lsn": 2, "value": 2}], "a")
    commits = list((tmp_path / "checkpoints").glob("*/commits/[0-9]*"))
    assert len(commits) == 2
    for each in commits:
        each.unlink()
        each.with_name(f".{each.name}.crc").unlink(missing_ok=True)
    run([{"id": 1, "region": "n", "lsn": 3, "value": 3}], "b")
    for name in ("delta", "iceberg"):
        target = sinks[name]
        assert isinstance(target, LakehouseTarget)
        assert contents(lake, target, pipeline, "id", "value") == {(1, 1), (2, 2), (1, 3)}
    for name in ("merged_delta", "merged_iceberg"):
        target = sinks[name]
        assert isinstance(target, LakehouseTarget)
        assert contents(lake, target, pipeline, "id", "value") == {(2, 2), (1, 3)}
