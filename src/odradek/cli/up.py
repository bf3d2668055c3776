"""`odradek up`: an example: a broker, simulated records, the pipeline on Spark, and the live view.

The stages of its start are shown with their durations: brokers, definition, Spark, flows, first output.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import click

from odradek.admin.cluster import Cluster
from odradek.admin.profiles import SERVERS, chosen_properties
from odradek.cli import example as examples
from odradek.cli.client.options import DEFAULT_BOOTSTRAP_SERVER
from odradek.cli.demo.local_brokers import brokers_option, check_ports, local_broker, local_cluster, port_option
from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import flag, format_option, option
from odradek.cli.framework.parameter_types import POSITIVE, TEXT
from odradek.cli.pipeline.options import connection_arguments, connection_choices, connection_options, require_packages
from odradek.conventions.failures import Failure
from odradek.examples.folders import find_example
from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.screens import LineScreen, chosen_screen
from odradek.examples.live_view.stages import Stages
from odradek.examples.live_view.text import servers_text
from odradek.examples.live_view.watching import watch
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import RecordProducer, producer_settings, sending
from odradek.local.child_process import ChildProcess, odradek_command
from odradek.local.ports import listening_error
from odradek.pipelines.operating import attempts

if TYPE_CHECKING:
    from odradek.examples.simulator.model import Simulation

STOP_TIMEOUT_S = attempts.STOP_TIMEOUT_S + 15.0  # it kills its attempt, a session of its own with Java, before that
ENDING_S = 5.0
SHARE_BEFORE_OUTPUT = 0.1  # of the simulated records, until the pipeline has written something
KEEPS_UP_S = 3.0  # of records that wait, at most, for the rate to be raised
RAISE_EVERY_S = 2.0
LEAST_BEFORE_OUTPUT = 100.0  # records/s, as far as the rate allows, so that the picture moves
RUNNING = " runs: "  # in the line which reports that all flows have been started


class PipelineProcess:
    """Reports its output. It is restarted after failures; `is_stopped` is set when it has given up, or is done."""

    def __init__(self, arguments: Sequence[str], is_stopped: threading.Event, report: Callable[[str], None]) -> None:
        self._arguments = arguments
        self._is_stopped = is_stopped
        self._report = report
        self._is_running = threading.Event()
        self._has_output_ended = threading.Event()
        self._is_stop_requested = False
        self._child = ChildProcess(on_line=self._take_line, on_output_end=self._end_output)

    def __enter__(self) -> Self:
        self._child.start(odradek_command("pipeline", "run", "--restart", *self._arguments))
        return self

    def _take_line(self, line: str) -> None:
        self._report(line)
        if RUNNING in line:
            self._is_running.set()

    def _end_output(self) -> None:
        self._has_output_ended.set()
        self._is_running.set()
        self._is_stopped.set()

    def wait_until_running(self, timeout_s: float = math.inf) -> bool:
        """Wait until all flows are started, the process has ended, or the time is over; False in the last case."""
        ends_at = time.monotonic() + timeout_s
        while not self._is_running.wait(min(0.1, max(0.0, ends_at - time.monotonic()))):
            if self._is_stopped.is_set() or time.monotonic() >= ends_at:
                return False
        return True

    def __exit__(self, *_error: object) -> None:
        self._is_stop_requested = not self._has_ended()
        self._child.end(signal.SIGINT, STOP_TIMEOUT_S)

    def _has_ended(self) -> bool:
        """Whether it has ended, or is about to: its output has ended."""
        if self._has_output_ended.is_set():
            self._child.wait(ENDING_S)
        return not self._child.is_running

    def raise_failure(self) -> None:
        """Raise a Failure if the process ended without being stopped."""
        process = self._child.process
        if not self._is_stop_requested and process is not None and process.returncode:
            raise Failure(f"the pipeline ended: {self._child.error_text()}")


PIPELINE, SPARK, FLOWS, OUTPUT = "definition", "Spark", "flows", "first output"
SPARK_STARTS = "starting Spark "
SPARK_IS_READY = "Spark is ready"
FAILED = "failed: "  # an attempt of the pipeline, which is started again
RETRYING = "; retrying in "
FAILURES_OF_A_LOOP = 2  # the pipeline may run between them, but it does not recover
SHOW_EVERY_S = 0.1
DEFAULT_CONSOLE_PORT = 8484
CONSOLE_STOP_TIMEOUT_S = 10.0
CONSOLE_PACKAGES = ("jinja2", "starlette", "uvicorn")


class Starting:
    """Turns the lines of `odradek pipeline run` into stages."""

    def __init__(self, screen: LineScreen, is_stopped: threading.Event, *, brokers_to_start: int) -> None:
        self._starts_brokers = brokers_to_start > 0
        brokers = ["broker" if brokers_to_start == 1 else "brokers"] if self._starts_brokers else []
        self.stages = Stages.named(*brokers, PIPELINE, SPARK, FLOWS, OUTPUT)
        self._screen = screen
        self._is_stopped = is_stopped
        self._failures = 0  # of the pipeline
        self._last_failure = ""

    def begin(self) -> None:
        self.stages.advance(time.time())
        self._screen.show_start(self.stages)

    def brokers_are_ready(self, bootstrap_servers: str) -> None:
        if self._starts_brokers:
            self.stages.advance(time.time(), servers_text(bootstrap_servers))
        self._screen.show_start(self.stages)

    def take_line(self, line: str) -> None:
        """Called on the thread that reads the pipeline's output. A pipeline that starts again repeats its lines."""
        now_s = time.time()
        if line.startswith(SPARK_STARTS):
            self.stages.advance_to(SPARK, now_s)
            self.stages.note(line.removeprefix("starting "))
        elif line.startswith(SPARK_IS_READY):
            self.stages.advance_to(FLOWS, now_s)
        elif RUNNING in line:
            if self._failures < FAILURES_OF_A_LOOP:
                self._screen.show_failure("")
            if self.stages.advance_to(FLOWS, now_s):
                self.stages.advance(now_s, line.partition(RUNNING)[2])
        elif line.startswith(FAILED):
            self._failures += 1
            self._last_failure = line.removeprefix(FAILED).partition(RETRYING)[0]
            again = f" {self._failures} times" if self._failures > 1 else ""
            self._screen.show_failure(f"the pipeline failed{again}: {line.removeprefix(FAILED)}")
        else:
            self.stages.note(line)

    def wait(self, process: PipelineProcess, seconds: float | None) -> bool:
        """Shows the stages; True when the pipeline runs, False when it has ended, or `seconds` after a failure."""
        ends_at: float | None = None
        while not process.wait_until_running(SHOW_EVERY_S) and not self._is_stopped.is_set():
            self._screen.show_start(self.stages)
            if ends_at is None and self._screen.failure and seconds is not None:
                ends_at = time.monotonic() + seconds
            if ends_at is not None and time.monotonic() >= ends_at:
                return False
        return not self._is_stopped.is_set()

    def raise_failure(self) -> None:
        """Raise a Failure if the pipeline failed again and again, or failed and has output nothing."""
        if self._failures >= FAILURES_OF_A_LOOP:
            raise Failure(f"the pipeline failed {self._failures} times; the last time: {self._last_failure}")
        if self._failures and (self._screen.failure or not self.stages.is_over):
            raise Failure(f"the pipeline failed: {self._last_failure}")


def pipeline_picture(file: str, environment: Mapping[str, str]) -> list[str]:
    """The lineage of the pipeline as lines; nothing if the definition has errors, which the pipeline reports."""
    from odradek.pipelines.planning.lineage import draw_text, lineage_of
    from odradek.pipelines.planning.loading import load_file

    plans = [each.plan for each in load_file(file, environment) if each.plan is not None and each.is_sound]
    return draw_text(plans[0].pipeline, lineage_of(plans[0])).splitlines() if plans else []


@command(
    ("the oil rigs, until Ctrl-C", "odradek up"),
    ("half a minute, then a summary", "odradek up rigs --seconds 30"),
    ("on an existing cluster, with more records", "odradek up --bootstrap-server kafka:9092 --rate 3000"),
    ("a folder of your own", "odradek up ./wells"),
    ("with three brokers and ZooKeeper", "odradek up --brokers 3"),
    name="up",
)
@click.argument("name", metavar="EXAMPLE", type=TEXT, default=examples.DEFAULT_EXAMPLE, cls=OptionalArgument)
@option("--seconds", "N", POSITIVE, "Stop after N seconds, and print a summary.")
@examples.rate_option
@examples.entities_option
@examples.seed_option
@option("--bootstrap-server -b", "HOST:PORT", TEXT, "Use this cluster instead of starting a broker.")
@port_option
@connection_options
@brokers_option
@option("--master", "URL", TEXT, "Spark's master, such as local[2] or spark://host:7077.")
@option(
    "--definition", "FILE", click.Path(dir_okay=False, exists=True),
    "Definition of the pipeline. Default: pipeline.yml of the example.",
)  # fmt: skip
@flag("--no-console", "Do not start the web console.")
@option(
    "--console-port", "PORT", click.IntRange(min=0, max=65535),
    "Port of the console. Default: 8484, or a free one if that is in use.",
)  # fmt: skip
@format_option
def up(
    name: str, seconds: float | None, rate: float | None, entities: int | None, seed: int | None,
    bootstrap_server: str | None, port: int, brokers: int, master: str | None, definition: str | None,
    no_console: bool, console_port: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Run an example: a broker, simulated records, a pipeline, a live view and the console.

    EXAMPLE is the name of an example (`odradek example list`), rigs by default, or a folder. Topics and views are
    discarded at the end, unless they are on a cluster of yours. Ctrl-C stops everything. The address of the console is
    printed; a browser shows the records within seconds, while Spark starts.
    """
    properties = running_cluster(bootstrap_server)
    if brokers > 1 and properties is not None:
        raise click.UsageError("--brokers starts brokers, and the other options name running ones: give one of both")
    require_packages()
    example = find_example(name)
    view = examples.read_view(example)
    simulation = examples.overridden(examples.read_simulation(example), rate, entities, seed)
    file = definition or example.definition
    is_stopped = threading.Event()
    screen = chosen_screen(view.title, "", as_json=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(stop_on_interrupt(is_stopped))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-up-"))
        stack.callback(screen.close)
        starting = Starting(screen, is_stopped, brokers_to_start=brokers if properties is None else 0)
        if properties is None:
            check_ports(port, brokers, "up")
        page_port = None if no_console or has_no_console() else choose_console_port(console_port)
        screen.open()
        starting.begin()
        if properties is None:
            one = stack.enter_context(local_broker(port)) if brokers == 1 else None
            running = one or stack.enter_context(local_cluster(brokers, port))
            cluster = Cluster(running.bootstrap_servers, {})
        else:
            cluster = Cluster(properties.pop(SERVERS), properties)
        is_new = cluster.create_topic(simulation.topic, simulation.partitions)
        screen.bootstrap_servers = cluster.bootstrap_servers
        screen.hint = examples.consume_hint(view.output, cluster.bootstrap_servers)
        starting.brokers_are_ready(cluster.bootstrap_servers)
        if page_port is not None:
            stack.enter_context(ConsoleProcess(cluster, page_port, screen, example.name if view.readings else ""))
        # The records begin while Spark starts, so that there is something to see; the pipeline reads them all. They are
        # few until it does, so that it is not late. All figures count from here.
        model = LiveViewModel(view, time.time())
        follower = stack.enter_context(examples.following(cluster, model))
        sender = stack.enter_context(few_records(cluster, simulation, is_stopped))
        warehouse = f"sqlite:///{folder}/warehouse.db"
        arguments = [file, "--bootstrap-server", cluster.bootstrap_servers, "--checkpoints", f"{folder}/checkpoints"]
        arguments += [*connection_arguments(), "--warehouse", warehouse, *(["--master", master] if master else [])]
        arguments += [] if is_new else ["--from", "latest"]  # older records would count as late
        process = stack.enter_context(PipelineProcess(arguments, is_stopped, starting.take_line))
        starting.stages.picture = pipeline_picture(file, os.environ)
        if starting.wait(process, seconds):
            watch(
                follower, warehouse, model, screen, is_stopped, seconds, starting.stages,
                Ramp(sender, simulation.rate, model).turn,
            )  # fmt: skip
            report("stopping")
        screen.close()
    process.raise_failure()
    starting.raise_failure()
    if sender.failure is not None:
        raise Failure(f"the records could not be produced: {sender.failure.args[0].str()}")


class Ramp:
    """Raises the rate of the records from the first output on: doubled while the pipeline keeps up, whose first batches
    take long."""

    def __init__(self, sender: RecordProducer, rate: float, model: LiveViewModel) -> None:
        self._sender, self._rate, self._model = sender, rate, model
        self._raised_at_s = 0.0

    def turn(self, now_s: float | None = None) -> None:
        now_s = time.monotonic() if now_s is None else now_s
        sender, lag = self._sender, self._model.lag
        if sender.rate >= self._rate or now_s < self._raised_at_s + RAISE_EVERY_S:
            return
        if self._model.has_output and (lag is None or lag.records <= sender.rate * KEEPS_UP_S):
            sender.rate, self._raised_at_s = min(self._rate, sender.rate * 2), now_s


@contextlib.contextmanager
def few_records(cluster: Cluster, simulation: Simulation, is_stopped: threading.Event) -> Iterator[RecordProducer]:
    """Sends simulated records at a share of their rate, until the rate is changed."""
    producer = cluster.producer(producer_settings(simulation.rate))
    few = min(simulation.rate, max(simulation.rate * SHARE_BEFORE_OUTPUT, LEAST_BEFORE_OUTPUT))
    sender = RecordProducer(producer, simulation.topic, Population(simulation), few)
    with sending(sender, is_stopped):
        yield sender


def running_cluster(bootstrap_server: str | None) -> dict[str, str] | None:
    """Client properties of the cluster that the options name; None without one, for a broker of the example's own."""
    chosen = connection_choices()
    if bootstrap_server is None and not chosen:
        return None
    return chosen_properties(
        profile=chosen.get("profile"),
        secure=chosen.get("secure"),
        command_config=chosen.get("command_config"),
        given={},
        bootstrap_server=bootstrap_server,
        default_server=DEFAULT_BOOTSTRAP_SERVER,
    )


def report(line: str) -> None:
    click.echo(line, err=True)


def has_no_console() -> bool:
    missing = next((name for name in CONSOLE_PACKAGES if importlib.util.find_spec(name) is None), None)
    if missing is not None:
        report(f"console: not started, because the package {missing} is not installed; pip install 'odradek[console]'")
    return missing is not None


def choose_console_port(wanted: int | None) -> int:
    """The given port; Failure if it is in use. Without one, the default port, or any other if that is in use."""
    error = listening_error(DEFAULT_CONSOLE_PORT if wanted is None else wanted)
    if error is None:
        return DEFAULT_CONSOLE_PORT if wanted is None else wanted
    if wanted is None:
        return 0
    reason = (error.strerror or str(error)).lower()
    raise Failure(f"--console-port {wanted}: {reason}; choose another one, or 0 for a free one")


class ConsoleProcess:
    """`odradek console`. The screen points to its page of the example; a line says why there is none."""

    def __init__(self, cluster: Cluster, port: int, screen: LineScreen, example: str) -> None:
        self._command = odradek_command(
            "console", "--bootstrap-server", cluster.bootstrap_servers, *connection_arguments(),
            "--listen", f"127.0.0.1:{port}", "--format", "json",
        )  # fmt: skip
        page = f"examples/{example}" if example else ""
        self._child = ChildProcess(
            on_ready=lambda: screen.show_console(f"{self._child.facts['console']}{page}"),
            on_output_end=self._report_early_end,
        )
        self._is_stopping = False

    def __enter__(self) -> Self:
        self._child.start(self._command)
        return self

    def _report_early_end(self) -> None:
        self._child.wait()
        if not self._is_stopping and self._child.process is not None and self._child.process.returncode:
            report(f"console: {self._child.error_text()}")

    def __exit__(self, *_error: object) -> None:
        self._is_stopping = True
        self._child.end(signal.SIGTERM, CONSOLE_STOP_TIMEOUT_S)
