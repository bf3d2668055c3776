"""`odradek broker`: run a broker in the foreground. Imports neither rich nor a Kafka client, to start fast."""

from __future__ import annotations

import os
import signal
import threading

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.options import format_option


@command(
    examples=[
        ("on 127.0.0.1:9092", "odradek broker"),
        ("with a properties file, as Kafka's", "odradek broker server.properties"),
        ("override a property of the file", "odradek broker server.properties --override log.dirs=./data"),
        ("another port", "odradek broker --override listeners=PLAINTEXT://127.0.0.1:9192"),
    ]
)
@click.argument(
    "properties",
    cls=OptionalArgument,
    metavar="SERVER.PROPERTIES",
    required=False,
    type=click.Path(exists=True, dir_okay=False),
)
@click.option(
    "--override",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Property that takes precedence over the file and the environment. Repeatable.",
)
@click.option("--stop-with", "descriptor", type=int, hidden=True)
@format_option
def broker(properties: str | None, overrides: tuple[str, ...], descriptor: int | None, as_json: bool) -> None:
    """Run a broker in the foreground, until SIGTERM or Ctrl-C.

    A line on standard output reports that the broker is ready. Properties have Kafka's names and are read from the
    file, the environment (ODRADEK_LOG_DIRS for log.dirs) and --override; the later takes precedence.

    With --format json the ready line is an object with node id, endpoints and log directories, and the log on standard
    error is one object per line. A start that fails prints a plain line "odradek: error: ..." there.
    """
    from odradek.server.main import BrokerFailure, run_broker  # noqa: PLC0415 - help does not need it

    if descriptor is not None:
        stop_with(descriptor)
    if as_json:
        os.environ["ODRADEK_LOG_FORMAT"] = "json"
    try:
        run_broker(properties, overrides, as_json=as_json)
    except BrokerFailure as failure:
        raise Failure(str(failure)) from failure


def stop_with(descriptor: int) -> None:
    """Send SIGTERM to this process when the other end of the pipe is closed: the process that held it has ended.

    A thread waits in read(2). Unlike PR_SET_PDEATHSIG this works on macOS, and does not depend on the thread that
    started this process.
    """

    def wait_for_end() -> None:
        while os.read(descriptor, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, name="stop-with", daemon=True).start()
