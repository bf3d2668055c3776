"""What a batch gives to its ends: the rows of tables, and records; also the batches of a row program."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from odradek.pipelines.definition.model import TopicTarget
from odradek.pipelines.spark.computing.row_program import GROUPS, rows_of_end
from odradek.pipelines.spark.frames import ORIGIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.planning.plan import End, Flow
    from odradek.pipelines.spark.computing.row_program import RowProgram
    from odradek.pipelines.spark.frames import RowsByName
    from odradek.pipelines.spark.writing.kafka_records import Producer

    Records = list[tuple[Producer, DataFrame]]


class Write(Protocol):
    """Writes the rows of tables and the records of a batch; adds the rows of tables to `rows`, by end."""

    def __call__(self, tables: RowsByName, records: Records, rows: Counter[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class ProgramRows:
    """The rows of a batch by table."""

    program: RowProgram
    batch: DataFrame

    def rows(self, name: str) -> DataFrame:
        return self.program.rows(self.batch, name)

    def of_end(self, end: End) -> DataFrame:
        own = rows_of_end(end)
        return self.rows(own if own in self.program.tables else end.input)

    def groups(self, _flow: Flow) -> DataFrame | None:
        return self.rows(GROUPS).drop(ORIGIN).distinct() if GROUPS in self.program.tables else None


def write_program(program: RowProgram, flow: Flow, batch: DataFrame, write: Write) -> Counter[str]:
    """Computes a batch of a program once, and writes it; returns the rows of tables, by end."""
    others = [each for each in flow.ends if not isinstance(each.target, TopicTarget)]
    is_kept = program.can_fail or len(program.records) + len(others) > 1
    frame, rows = batch.persist() if is_kept else batch, Counter[str]()
    try:
        if program.can_fail or not (program.records or others):
            frame.count()  # a check with otherwise: fail raises here, before anything is written
        write(ProgramRows(program, frame), program.records_in(frame), rows)
    finally:
        if is_kept:
            frame.unpersist()
    return rows
