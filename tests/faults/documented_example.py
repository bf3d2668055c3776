"""The first example of docs/testing-failover.md, as it is printed, on a cluster that runs already."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.testing import RunningCluster

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing-failover.md"


def run_documented_example(cluster: RunningCluster) -> None:
    example = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(compile(example, str(DOCUMENT), "exec"), names)
    names["cluster"] = lambda brokers: nullcontext(cluster)
    names["test_orders_survive_the_death_of_a_leader"]()
