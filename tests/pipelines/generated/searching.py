"""Checks the cases of seeds, and reports how many differ and which constructs they have."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pipelines.generated.drawing import case_of
from tests.pipelines.generated.records import SPLITS
from tests.pipelines.generated.runs import Overloaded, check_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 3


class Search:
    """Goes on after a difference, so that one run finds all."""

    def __init__(self, spark: SparkSession, engines: tuple[str, ...] = ("standard", "batch")) -> None:
        self._spark, self._engines = spark, engines
        self.checked = 0
        self.differences: list[str] = []
        self.unfinished: list[str] = []
        self._constructs: Counter[str] = Counter()

    def check(self, seed: int) -> None:
        """Runs the case of a seed on each engine, as a stream in one of three splits into batches."""
        case = case_of(seed)
        # With one partition the rows of a batch stay in their order where a cluster loses it.
        self._spark.conf.set("spark.sql.shuffle.partitions", str(1 + seed % 2))
        splits = [each for each in SPLITS if each != "one by one" or not case.has_late_rows]
        split = splits[seed // 2 % len(splits)]
        for engine in self._engines:
            batches = SPLITS["as drawn" if engine == "batch" else split](case.batches)
            for attempt in range(ATTEMPTS):
                try:
                    with tempfile.TemporaryDirectory(prefix="odradek-case-") as folder:
                        self.differences += check_case(self._spark, case, batches, engine, Path(folder))
                    break
                except Overloaded as overloaded:
                    self.unfinished += [f"seed {seed}: {overloaded}"] if attempt == ATTEMPTS - 1 else []
        self.checked += 1
        self._constructs.update(set(case.constructs()))

    def report(self, seconds: float) -> str:
        engines = " and ".join(self._engines)
        head = f"{self.checked} definitions on {engines}: {len(self.differences)} differences"
        each = f"{seconds / max(1, self.checked):.1f} s per definition"
        counts = [f"{count:5d}  {name}" for name, count in sorted(self._constructs.items())]
        return "\n".join([f"{head}; {each}", *counts, *self.unfinished])
