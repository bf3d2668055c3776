"""Definitions as plain values, and their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.decorators import to_node
from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.places import Place, Problems
from odradek.pipelines.planning.rules import checked_plan
from odradek.pipelines.planning.tables import make_plan

if TYPE_CHECKING:
    from odradek.pipelines.planning.plan import Plan

PROCESSORS = '''
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor


class Numbers(StatefulProcessor):
    """Numbers the rows of a key."""

    def init(self, handle):
        self.last = handle.getValueState("last", "i BIGINT")

    def made(self, key, row, i):
        return Row(k=key[0], i=i)

    def handleInputRows(self, key, rows, timerValues):
        i = self.last.get()[0] if self.last.exists() else 0
        for row in rows:
            i += 1
            yield self.made(key, row, i)
        self.last.update((i,))


class NumberedRows(Numbers):
    """Numbers the rows of a key, by arrival."""

    def made(self, key, row, i):
        return Row(k=key[0], id=row["id"], i=i)


def positive(rows):
    return rows.where("n > 0").withColumn("x", F.col("n") * 10)
'''
LABELS = (("a", "Ada"), ("b", "Bob"), ("d", "Dan"))
KNOWN = (("a", "Ada"), ("d", "Dan"))  # the rows of the step `known`
LABELS_SOURCE = {"files": {"path": "labels.json", "format": "json"}, "schema": "k STRING, label STRING"}
KNOWN_STEP = {"sql": "select k, max(label) as label from labels where label <> 'Bob' group by k order by k"}


def planned(definition: dict[str, Any], problems: Problems, *, is_checked: bool) -> Plan:
    """The plan of a definition; what cannot be parsed is a fault of the generator."""
    parsed = parse_pipeline(to_node(definition, Place("pipeline.yml", 1, 1)), problems)
    assert parsed is not None, str(problems.errors[0])
    assert not problems.errors, str(problems.errors[0])
    return checked_plan(parsed.pipeline, problems) if is_checked else make_plan(parsed.pipeline, problems)
