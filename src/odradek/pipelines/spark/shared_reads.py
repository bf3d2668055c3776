"""Flows that share one streaming query: the source is read and parsed once, and each flow is a branch of the query.

All branches begin with the same exchange above the same scan, which Spark then runs once. Two things are done for that.
Rows go through a generator (`as_whole_rows`) directly above the exchange, so that the optimizer makes no branch
different below it. And watermarks are set above the exchange: for a branch that reuses an exchange, Spark does not see
watermarks below it.

The output of a branch is a row with the columns of its outputs, in which the columns of the other branches are null,
which means no row (`one_pass`). So all branches together are one pass, with one set of outputs.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.engines.settings import SHUFFLE_PARTITIONS, UNCHECKED
from odradek.pipelines.spark.hidden_columns import quoted
from odradek.pipelines.spark.one_pass.passing import Pass
from odradek.pipelines.spark.records import OBSERVED
from odradek.pipelines.spark.stateful_plans import PACKED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from odradek.pipelines.spark.one_pass.row_columns import Table
    from odradek.pipelines.spark.producers import Producer

# Spark accepts one aggregation in update mode, because it cannot tell branches from a chain. These are branches.
SETTINGS = UNCHECKED


def read_once_for_all(records: DataFrame) -> DataFrame:
    """The records of a topic behind an exchange. Records of a partition stay together, in their order."""
    count = int(records.sparkSession.conf.get(SHUFFLE_PARTITIONS) or "1")
    return as_whole_rows(records, lambda packed: packed.repartitionById(count, partition_of(count)))


def partition_of(count: int) -> Column:
    return F.pmod(F.col(f"{PACKED}.partition"), F.lit(count))


def as_whole_rows(frame: DataFrame, between: Callable[[DataFrame], DataFrame] = lambda packed: packed) -> DataFrame:
    """The same rows, as the output of a generator: Spark neither moves filters below it nor removes columns there.

    `between` is applied to the rows packed into one column."""
    packed = frame.select(F.struct(*map(quoted, frame.columns)).alias(PACKED))
    return between(packed).select(F.inline(F.array(PACKED)))


def combined(passes: Sequence[Pass]) -> Pass:
    """One pass with the outputs of all; a table that several have is that of the first, because its rows are equal."""
    records: dict[Producer, str] = {}
    tables: dict[str, Table] = {}
    frames = []
    for number, each in enumerate(passes):
        names: dict[str, str] = {}  # of the columns in the combined frame
        for producer, column in each.records.items():
            names[column] = records.setdefault(producer, f"__written_{len(records)}")
        for name, table in each.tables.items():
            if name not in tables:
                tables[name] = replace(table, column=f"__table_{len(tables)}")
                names[table.column] = tables[name].column
        if names or each.counts or each.must_hold:
            frame = each.observed(f"{OBSERVED} {number}")
            frames.append(frame.select(*(F.col(quoted(old)).alias(new) for old, new in names.items())))
    union = functools.reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    counts = tuple(count for each in passes for count in each.counts)
    can_fail = any(each.can_fail for each in passes)
    return Pass(union, records, tables, counts, (), is_checked_before=can_fail, is_observed=True)
