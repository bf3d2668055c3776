"""The settings of a session do not depend on the machine."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.sessions.jars import SQLITE, JarsMissing, driver_jar
from odradek.pipelines.spark.sessions.session import ZONE, defaults_for, settings_for

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json
import sys
from odradek.pipelines.definition.model import JdbcOrigin, Pipeline, Source
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.spark.reading.sources import read_once
session = start_session("zone", json.loads(sys.argv[1]), "local[1]", has_connector=False)
columns = "current_timezone() as zone, hour(to_timestamp('2026-01-01T00:30:00Z')) as hour, hour(opens) as opens"
source = Source("shops", JdbcOrigin(sys.argv[2], "shops"), is_stream=False)
shops = read_once(session, source, Pipeline("p"), lambda _topic, _origin: 0)
print(json.dumps(shops.selectExpr(*columns.split(", ")).collect()[0].asDict()))
session.stop()
"""


@pytest.mark.parametrize("master", ["local[2]", "spark://somewhere:7077"])
def test_the_time_zone_is_utc(master: str) -> None:
    assert defaults_for(master, {})[ZONE] == "UTC"


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "UTC"),
        ("Europe/Zurich", "Europe/Zurich"),
        ("America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("+01:00", "GMT+01:00"),
        ("UTC-3", "GMT-3"),
        ("GMT+0530", "GMT+0530"),
        ("+01:00:30", None),
        ("UTC -Dother=1", None),
    ],
)
def test_java_has_the_time_zone_of_the_session(zone: str, expected: str | None) -> None:
    option = "" if expected is None else f" -Duser.timezone={expected}"
    for process in ("driver", "executor"):
        name = f"spark.{process}.defaultJavaOptions"
        assert settings_for("local[2]", {ZONE: zone})[name] == f"-XX:-DontCompileHugeMethods{option}"


def test_java_options_of_the_user_come_after_the_time_zone() -> None:
    name, other = (f"spark.{process}.defaultJavaOptions" for process in ("driver", "executor"))
    found = settings_for("local[2]", {name: "-Dhttps.proxyHost=proxy", ZONE: "Europe/Zurich"})
    options = "-XX:-DontCompileHugeMethods -Duser.timezone=Europe/Zurich"
    assert found[name] == f"{options} -Dhttps.proxyHost=proxy"
    assert found[other] == options


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize(("zone", "hour"), [("UTC", 0), ("Asia/Tokyo", 9), ("-03:30", 21)])
def test_the_time_zone_of_the_machine_is_not_used(tmp_path: Path, zone: str, hour: int) -> None:
    """Neither for the functions of Spark nor for timestamps without a zone of a database."""
    try:
        driver_jar(SQLITE)
    except JarsMissing as error:
        pytest.skip(str(error))
    with sqlite3.connect(tmp_path / "shops.db") as connection:
        connection.execute("create table shops (opens timestamp)")
        connection.execute("insert into shops values ('2026-07-01 08:00:00.000')")
    settings = {} if zone == "UTC" else {ZONE: zone}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings), f"jdbc:sqlite:{tmp_path / 'shops.db'}"],
        env={**os.environ, "TZ": "Europe/Zurich"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert json.loads(found.stdout) == {"zone": zone, "hour": hour, "opens": 8}
