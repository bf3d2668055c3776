"""`odradek broker`: run a broker in the foreground. Imports neither rich nor a Kafka client: start-up counts."""

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
        ("with a file of Kafka's own property names", "odradek broker server.properties"),
        ("another place, over what the file says", "odradek broker server.properties --override log.dirs=./data"),
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
    help="A property that wins over the file. Repeatable.",
)
@click.option("--stop-with", "descriptor", type=int, hidden=True)
@format_option
def broker(properties: str | None, overrides: tuple[str, ...], descriptor: int | None, as_json: bool) -> None:
    """Run a broker in the foreground, until SIGTERM or Ctrl-C.

    One line says when it is ready. Properties have Kafka's own names; they are read from the file, then from the
    environment, then from --override. With --format json the log is one JSON object a line.
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
    """Send ourselves SIGTERM when the pipe closes: whoever holds its other end has gone, however it went.

    A thread that sleeps in read(2); unlike PR_SET_PDEATHSIG it works on macOS, and does not fire when merely the
    thread that started us ends.
    """

    def wait_for_end() -> None:
        while os.read(descriptor, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, name="stop-with", daemon=True).start()
