"""The example of docs/testing-failover.md runs as it is printed."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from odradek.testing import RunningCluster

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java, 11 or newer, on the PATH")

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing-failover.md"


@pytest.mark.timeout(600)
def test_the_first_example_runs(odradek_cluster: RunningCluster) -> None:
    """On the cluster of the fixture, which is made by the function that the example imports."""
    example = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(compile(example, str(DOCUMENT), "exec"), names)
    names["cluster"] = lambda brokers: nullcontext(odradek_cluster)
    names["test_orders_survive_the_death_of_a_leader"]()
