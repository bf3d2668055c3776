"""The settings of a session do not depend on the machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from odradek.pipelines.spark.session import defaults_for

ZONE = "spark.sql.session.timeZone"
PROGRAM = """
from odradek.pipelines.spark.session import start_session
session = start_session("zone", {}, "local[1]", has_connector=False)
print(session.sql("select current_timezone(), hour(to_timestamp('2026-01-01T00:30:00Z'))").collect()[0])
session.stop()
"""


@pytest.mark.parametrize("master", ["local[2]", "spark://somewhere:7077"])
def test_the_time_zone_is_utc(master: str) -> None:
    assert defaults_for(master, {})[ZONE] == "UTC"


@pytest.mark.spark
@pytest.mark.soak
def test_the_time_zone_of_the_machine_is_not_used() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TZ": "Europe/Zurich"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "current_timezone()='UTC'" in found.stdout
    assert found.stdout.strip().endswith("=0)")
