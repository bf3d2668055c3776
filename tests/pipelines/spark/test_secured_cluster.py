"""Pipelines on a cluster that is reached over mutual TLS, or over TLS with SCRAM; no secret leaves the processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipelines.spark.stage import Stage
from tests.security.secured_broker import PASSWORD, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.security.secured_broker import SecuredBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
LIMIT_S = 300
SPARK_SECRET = "bAndicoot-3-sleeping"
KEY_LINES = 3  # lines of the private key that are searched for


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.fixture
def stage(spark: SparkSession, secured: SecuredBroker, tmp_path: Path) -> Stage:
    return Stage(spark, secured.servers("PLAINTEXT"), tmp_path)


def definition(stage: Stage, engine: str = "standard") -> Path:
    """A pipeline from a topic to a topic, whose Spark writes an event log."""
    file = stage.folder / "pipeline.yml"
    events = stage.folder / "events"
    events.mkdir()
    file.write_text(
        textwrap.dedent(f"""
        pipeline: {stage.prefix}
        engine: {engine}
        checkpoints: checkpoints
        bootstrap_servers: 127.0.0.1:1
        spark:
          spark.eventLog.enabled: "true"
          spark.eventLog.compress: "false"
          spark.eventLog.dir: "file:{events}"
          spark.hadoop.fs.s3a.secret.key: {SPARK_SECRET}
        sources: {{readings: {{topic: {stage.topic("in")}, schema: "id BIGINT"}}}}
        steps: {{doubled: {{sql: "select id * 2 as id from readings"}}}}
        sinks: {{out: {{from: doubled, topic: {stage.topic("out")}, key: id}}}}
        """)
    )
    return file


class SeenCommandLines:
    """The command lines of all processes of this machine, read over and over while a test runs."""

    def __init__(self) -> None:
        self.lines: set[str] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> SeenCommandLines:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.lines.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:
                    continue  # the process has ended


def run_pipeline(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With `--restart`, because then the command line of a child process has the choices, too."""
    command = [sys.executable, "-m", "odradek", "pipeline", "run", str(stage.folder / "pipeline.yml")]
    limits = [] if "batch" in arguments else ["--restart", "--until-caught-up"]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(stage.folder / "config")}
    return subprocess.run(
        [*command, *limits, "--format", "json", *arguments],
        capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=stage.folder, env=environment,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def private_texts(secured: SecuredBroker) -> list[str]:
    pem = (secured.directory / "client.pem").read_text()
    begin = pem.index("PRIVATE KEY-----")
    return [PASSWORD, SPARK_SECRET, *pem[begin:].splitlines()[1 : 1 + KEY_LINES]]


def files_with(folder: Path, texts: list[str]) -> list[str]:
    wanted = [text.encode() for text in texts]
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and "config" not in path.parts and path.name != "pipeline.yml"
    )
    return [str(path) for path in files if any(text in path.read_bytes() for text in wanted)]


@pytest.mark.more
@pytest.mark.parametrize("protocol", ["SASL_SSL", pytest.param("SSL", marks=pytest.mark.soak)])
def test_pipeline_reads_and_writes_a_secured_cluster(stage: Stage, secured: SecuredBroker, protocol: str) -> None:
    stage.create("in")
    stage.produce("in", [{"id": number} for number in range(20)])
    definition(stage)
    with SeenCommandLines() as seen:
        done = run_pipeline(stage, "--command-config", str(secured.properties_file(protocol)))
    assert done.returncode == 0, done.stderr
    assert sorted(record.json["id"] for record in stage.read("out")) == list(range(0, 40, 2))
    texts = private_texts(secured)
    assert not [text for text in texts if text in done.stdout + done.stderr]
    assert not [line for line in seen.lines if any(text in line for text in texts)]
    assert any("--command-config=" in line for line in seen.lines), "the child process was not seen"
    assert files_with(stage.folder, texts) == []
    events = "".join(path.read_text() for path in (stage.folder / "events").rglob("events*") if path.is_file())
    assert stage.prefix in events
    if protocol == "SASL_SSL":
        assert "redacted" in events


@pytest.mark.soak
@pytest.mark.parametrize(("protocol", "engine"), [("SASL_SSL", "realtime"), ("SSL", "batch")])
def test_other_engines_read_and_write_a_secured_cluster(
    stage: Stage, secured: SecuredBroker, protocol: str, engine: str
) -> None:
    stage.create("in")
    stage.produce("in", [{"id": number} for number in range(20)])
    definition(stage, engine)
    limits = ["--engine", "batch"] if engine == "batch" else ["--seconds", "20"]
    done = run_pipeline(stage, *limits, "--command-config", str(secured.properties_file(protocol)))
    assert done.returncode == 0, done.stderr
    assert sorted(record.json["id"] for record in stage.read("out")) == list(range(0, 40, 2))


@pytest.mark.soak
def test_sql_and_profiles_reach_a_secured_cluster(stage: Stage, secured: SecuredBroker) -> None:
    """A profile keeps librdkafka's properties, which Spark's connector gets under Kafka's names."""
    topic = stage.create("in", 1)
    stage.produce("in", [{"id": 5}])
    environment = {**os.environ, "XDG_CONFIG_HOME": str(stage.folder / "config")}

    def odradek(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "odradek", *arguments],
            capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    odradek("profile", "add", "prod", "--command-config", str(secured.properties_file("SASL_SSL")))
    query = f"select value from `{topic}`"
    found = odradek("--profile", "prod", "sql", query, "--format", "json")
    assert json.loads(json.loads(found)["value"]) == {"id": 5}
