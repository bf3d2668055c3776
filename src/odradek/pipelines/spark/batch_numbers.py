"""The number by which a batch is recognized in a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.warehouse import BatchNumber

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID = "sql.streaming.queryId"  # set by Spark for the thread that runs a batch


class BatchUnidentified(PipelineError):
    """Spark did not report the query id of a batch."""

    healing = Healing.NEVER


def number_of(batch: DataFrame, flow: str, number: int, epoch: int = 0, run: str = "") -> BatchNumber:
    """The batch's number with the query id of its checkpoint.

    Spark numbers batches per checkpoint. Without the query id, the first batches after a reset would look like those
    before it, and would be skipped.
    """
    query = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if not query:
        raise BatchUnidentified(
            f"Spark did not report the query id ({QUERY_ID}) of batch {number} of flow {flow}: a replayed batch cannot "
            "be distinguished from a new one, so nothing was written; use PySpark 4.1.1 or 4.3.0, which report it"
        )
    return BatchNumber(query, number, epoch, run)
