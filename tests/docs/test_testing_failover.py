"""The example of docs/testing-failover.md runs as it is printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing-failover.md"


@pytest.mark.timeout(600)
def test_the_first_example_runs() -> None:
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")
    example = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(compile(example, str(DOCUMENT), "exec"), names)
    names["test_orders_survive_the_death_of_a_leader"]()
