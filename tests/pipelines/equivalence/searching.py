"""Checks the cases of seeds, and reports how many differ and which constructs they have."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.loading import Way
from tests.pipelines.equivalence.checking import ENGINES, Different, Overloaded, check_case
from tests.pipelines.equivalence.constructs import constructs_of
from tests.pipelines.equivalence.streams import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipelines.equivalence.cases import Case


ATTEMPTS = 3


class Search:
    """Goes on after a difference, so that one run finds all."""

    def __init__(self, spark: SparkSession, engines: tuple[str, ...] = ENGINES, way: Way = Way.OLD) -> None:
        self._spark = spark
        self._engines = engines
        self._way = way
        self.checked = 0
        self.refused: list[str] = []
        self.unfinished: list[str] = []
        self.differences: list[str] = []
        self._constructs: Counter[str] = Counter()

    def check(self, seed: int, case: Case) -> None:
        # With one partition the rows of a batch stay in their order where a cluster loses it. Special definitions are
        # drawn by every tenth seed, so each kind has both.
        self._spark.conf.set("spark.sql.shuffle.partitions", str(1 + seed // 10 % 2))
        try:
            self._check(case)
        except Refused as refused:
            self.refused.append(f"seed {seed}: {refused}")
            return
        except Overloaded as overloaded:
            self.unfinished.append(f"seed {seed}: {overloaded}")
            return
        except Different as different:
            self.differences.append(f"seed {seed}:\n{different}")
        self.checked += 1
        self._constructs.update(constructs_of(case))

    def _check(self, case: Case) -> None:
        for _ in range(ATTEMPTS - 1):
            with suppress(Overloaded):
                return self._run(case)
        return self._run(case)

    def _run(self, case: Case) -> None:
        with tempfile.TemporaryDirectory(prefix="odradek-case-") as folder:
            check_case(self._spark, case, Path(folder), self._engines, self._way)

    def report(self, seconds: float) -> str:
        per_case = seconds / max(1, self.checked)
        head = (
            f"{self.checked} definitions on {' and '.join(self._engines)}: {len(self.differences)} differ; "
            f"validate refused {len(self.refused)}; {per_case:.1f} s per definition"
        )
        counts = [f"{count:5d}  {name}" for name, count in sorted(self._constructs.items())]
        return "\n".join([head, *counts, *self.refused, *self.unfinished])
