"""The number of a batch includes the query id of its checkpoint, without which nothing is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.sessions.failures import healing_of
from odradek.pipelines.spark.writing.run_takeover import QUERY_ID, BatchUnidentified, number_of
from odradek.pipelines.spark.writing.warehouse import BatchNumber


def batch_with(properties: dict[str, str]) -> Any:
    return SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=SimpleNamespace(getLocalProperty=properties.get)))


def test_a_batch_is_numbered_within_its_query() -> None:
    assert number_of(batch_with({QUERY_ID: "q"}), "rows", 3) == BatchNumber("q", 3)


def test_a_batch_without_a_query_id_is_refused() -> None:
    """After a reset it would be taken for a batch of the checkpoint before, and skipped."""
    with pytest.raises(BatchUnidentified, match=r"query id .* of batch 3 of flow rows: .* use PySpark") as refused:
        number_of(batch_with({}), "rows", 3)
    assert healing_of(refused.value) is Healing.NEVER
