"""`odradek pipeline run` and `odradek up`: from the command line to records, and the message when that fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from queue import Queue
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.pipeline.options import overridden
from odradek.pipelines.definition.model import Pipeline
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.commands import Run

LIMIT_S = 110
# Ends the first attempt of a pipeline, as a failure of Spark does.
FAILING_ONCE = """
import os, sys
if any(each.startswith("--events=") for each in sys.argv):
    try:
        os.mkdir(os.environ["FAILED_ONCE"])
    except FileExistsError:
        pass
    else:
        os._exit(7)
"""


def definition(folder: Path, topic: str, sql: str = "select id from readings") -> str:
    file = folder / "p.yml"
    file.write_text(
        textwrap.dedent(f"""
        pipeline: p
        checkpoints: checkpoints
        sources: {{readings: {{topic: {topic}, schema: "id BIGINT"}}}}
        steps:
          good: {{sql: "{sql}"}}
        sinks: {{out: {{from: good, topic: {topic}-out, key: id}}}}
        """)
    )
    return str(file)


def test_an_unsound_definition_does_not_start(offline: Run, tmp_path: Path) -> None:
    ran = offline("pipeline", "run", definition(tmp_path, "t", "select nothing from readings"))
    assert ran.code == 1
    assert "p.yml:6:" in ran.errors
    assert "pipeline validate" in ran.errors


def test_no_broker_is_reported_before_spark_starts(offline: Run, tmp_path: Path) -> None:
    ran = offline("pipeline", "run", definition(tmp_path, "t"), "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == 1
    assert "no broker answers at 127.0.0.1:1" in ran.errors
    assert "starting Spark" not in ran.errors


def test_a_supervised_pipeline_stops_with_the_process_that_started_it(tmp_path: Path) -> None:
    watched, held = os.pipe()
    command = [sys.executable, "-m", "odradek", "pipeline", "run", definition(tmp_path, "t"), "--restart"]
    with subprocess.Popen(
        [*command, "--bootstrap-server", "127.0.0.1:1", f"--stop-with={watched}"],
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[watched],
    ) as process:
        try:
            assert process.stderr is not None
            assert any("retrying in" in line for line in process.stderr)  # no broker answers
            os.close(held)
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()
    os.close(watched)


def test_a_batch_forgets_no_checkpoint(offline: Run, tmp_path: Path) -> None:
    """It is the stream's: to read a part of the log again is another command."""
    offsets = tmp_path / "checkpoints" / "readings" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n")
    file = definition(tmp_path, "t")
    ran = offline("pipeline", "run", file, "--engine", "batch", "--from", "earliest", "--yes")
    assert ran.code == 1
    assert f"odradek pipeline backfill {file} --from earliest" in ran.errors
    assert (offsets / "0").exists()


@pytest.mark.parametrize("more", [[], ["--restart"], ["--from", "earliest", "--yes"]])
def test_the_realtime_engine_does_not_run_until_caught_up(offline: Run, tmp_path: Path, more: list[str]) -> None:
    """It is refused before anything is started or forgotten."""
    offsets = tmp_path / "checkpoints" / "realtime" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n")
    file = definition(tmp_path, "t")
    ran = offline("pipeline", "run", file, "--engine", "realtime", "--until-caught-up", *more)
    assert ran.code == 1
    assert "--until-caught-up cannot be used with the realtime engine" in ran.errors
    assert "use --seconds N, or --engine standard" in ran.errors
    assert (offsets / "0").exists()


@pytest.mark.parametrize(
    ("given", "kept"),
    [("hdfs://host/checkpoints", "hdfs://host/checkpoints"), ("/some/folder", "/some/folder"), (None, "as defined")],
)
def test_a_folder_elsewhere_is_left_as_it_is_written(given: str | None, kept: str) -> None:
    assert overridden(Pipeline("p", checkpoints="as defined"), {"checkpoints": given}).checkpoints == kept


@pytest.mark.spark
@pytest.mark.soak
def test_it_runs_until_it_has_caught_up(bootstrap_server: str, topic: str, tmp_path: Path) -> None:
    for number in range(3):
        value = json.dumps({"id": number})
        assert run_odradek("produce", topic, "--value", value, "-b", bootstrap_server).code == 0
    file = definition(tmp_path, topic)
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "pipeline", "run", file, "--until-caught-up", "-b", bootstrap_server],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "readings batch 0: 3 rows" in done.stdout
    assert "p runs: readings" in done.stderr
    assert "WARN" not in done.stderr
    read = run_odradek(
        "consume", f"{topic}-out", "--from-beginning", "-n", "3", "-b", bootstrap_server, "--format", "json"
    )
    assert sorted(row["key"] for row in read.rows) == ["0", "1", "2"]


class Rigs:
    """A running `odradek up`, with the lines of its standard error and their times since its start."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.errors: list[tuple[float, str]] = []
        self.ready: dict[str, Any] = {}  # the first row of standard output
        self._started_at = time.monotonic()
        self._addresses: Queue[str | None] = Queue()  # None when it has ended
        self._collector = threading.Thread(target=self._collect_errors)
        self._collector.start()

    def _collect_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append((time.monotonic() - self._started_at, line))
            if line.startswith("console: http://"):
                self._addresses.put(line.removeprefix("console: ").strip())
        self._addresses.put(None)

    def said_after_s(self, start: str) -> float | None:
        """The time of the first line that starts so."""
        return next((seconds for seconds, line in self.errors if line.startswith(start)), None)

    def moved_after_s(self) -> float:
        """A newcomer with a browser: opens the address that is printed, and waits until the readings of a pump advance.
        Returns the time."""
        address = self._addresses.get()
        assert address is not None, "it ended without a console"
        with urllib.request.urlopen(address, timeout=60) as page:
            assert page.status == 200
        with urllib.request.urlopen(address.replace("/examples/", "/events/examples/"), timeout=60) as events:
            seconds: set[int] = set()
            while len(seconds) < 3:
                event = next(events)
                if event.startswith(b"data:"):
                    seconds.update(json.loads(event[5:])["points"]["time"][-1:])
        return time.monotonic() - self._started_at

    def until_progress(self, is_enough: Callable[[dict[str, int]], object]) -> None:
        """Reads standard output until the counts of records are enough."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            seen = json.loads(line)
            if seen["kind"] == "ready":
                self.ready = seen
            if seen["kind"] == "progress" and is_enough(seen["records"]):
                return
        pytest.fail("it ended")

    def summary_after_interrupt(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        last = list(self.process.stdout)[-1]
        assert self.process.wait(LIMIT_S) == 0
        summary: dict[str, Any] = json.loads(last)
        assert summary["kind"] == "summary"
        return summary

    def close(self) -> None:
        """Prints what was on standard error: pytest shows it if the test fails."""
        self.process.kill()
        self._collector.join()
        self.process.communicate()
        print(*(f"{seconds:5.1f} s  {line}" for seconds, line in self.errors), sep="")


@contextmanager
def running_rigs(
    folder: Path, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Rigs]:
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "up", "--port", "0", "--rate", "200", "--format", "json", *arguments],
        cwd=folder,  # the example is part of the package
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with closing(Rigs(process)) as rigs:
        yield rigs


@pytest.mark.spark
@pytest.mark.timeout(
    600
)  # 40 s on a machine with little else to do; with 20 processes for 2 cores, Spark alone takes 110 s
def test_the_rigs_run_from_sensor_to_alert_and_stop_on_ctrl_c(tmp_path: Path) -> None:
    """The first attempt of the pipeline fails, and it is started again. The picture in a browser moves before that."""
    (tmp_path / "sitecustomize.py").write_text(FAILING_ONCE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": path, "FAILED_ONCE": str(tmp_path / "failed")}
    with ThreadPoolExecutor() as browsers, running_rigs(tmp_path, "--console-port=0", environment=environment) as rigs:
        moving = browsers.submit(rigs.moved_after_s)
        rigs.until_progress(lambda records: records["pressure"] and records["rigs-dead-letters"])
        summary = rigs.summary_after_interrupt()
    assert rigs.said_after_s("the pipeline failed: process ended with exit code 7")
    assert rigs.ready["console"].endswith("/examples/rigs")
    flows_run_after_s = rigs.said_after_s("flows: ")
    assert flows_run_after_s is not None
    assert moving.result() < flows_run_after_s
    assert summary["counts"]["dead letters"]
    assert "no reason" not in summary["counts"]["dead letters"]


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(300)
def test_the_rigs_run_on_three_brokers(tmp_path: Path) -> None:
    """ZooKeeper and the brokers are started before the pipeline, and stopped after it."""
    with running_rigs(tmp_path, "--brokers", "3") as rigs:
        rigs.until_progress(lambda records: records["pressure"])
        rigs.summary_after_interrupt()
