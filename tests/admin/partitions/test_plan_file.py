"""Files of kafka-reassign-partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.admin.partitions.plan_file import read_plan_file
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from pathlib import Path


def test_the_replicas_of_each_partition_are_read(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(
        '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
    )
    assert read_plan_file(str(file)) == {("t", 1): (2, 3)}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"partitions": []}', '{"partitions": [{"topic": "t"}]}', '{"partitions": [1]}']
)
def test_another_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(Failure, match=r"plan\.json"):
        read_plan_file(str(file))
