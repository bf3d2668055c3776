"""`odradek broker`: run a broker in the foreground. Imports neither rich nor a Kafka client, to start fast."""

from __future__ import annotations

import gc
import os

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option, option, properties_argument, repeatable
from odradek.host.lifetime_pipe import terminate_when_parent_ends


@command(
    ("on 127.0.0.1:9092", "odradek broker"),
    ("with a properties file, as Kafka's", "odradek broker server.properties"),
    ("override a property of the file", "odradek broker server.properties --override log.dirs=./data"),
    ("with the certificates of `odradek secure init certs`", "odradek broker --secure certs"),
    ("another port", "odradek broker --port 9192"),
    (
        "four brokers, on ports 9092–9095",
        "odradek broker --processes 4 --override zookeeper.connect=127.0.0.1:2181",
    ),
)
@properties_argument
@repeatable(
    "--override overrides", "KEY=VALUE", str, "Property that takes precedence over the file and the environment."
)
@option(
    "--port", "PORT", click.IntRange(0, 65535),
    "Port of a broker for this machine, with one PLAINTEXT listener on 127.0.0.1; 0 for a free one.",
)  # fmt: skip
@option(
    "--processes", "N", click.IntRange(1, 1000),
    "Run N brokers with consecutive node ids and ports, one for each core. Needs zookeeper.connect.",
)  # fmt: skip
@option(
    "--secure", "DIR", click.Path(exists=True, file_okay=False),
    "Use the certificates and properties that `odradek secure init DIR` has made.",
)  # fmt: skip
@click.option("--stop-with", "descriptor", type=int, hidden=True)
@format_option
def broker(
    properties: str | None, overrides: tuple[str, ...], port: int | None, processes: int | None, secure: str | None,
    descriptor: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Run a broker in the foreground, until SIGTERM or Ctrl-C.

    A line on standard output reports that the broker is ready. Properties have Kafka's names and are read from the
    file, the environment (ODRADEK_LOG_DIRS for log.dirs) and --override; the later takes precedence.

    With --format json the ready line is an object with node id, endpoints and log directories, and the log on standard
    error is one object per line, unless ODRADEK_LOG_FORMAT is set. A start that fails prints a plain line
    "odradek: error: ..." there.

    With --processes N, this process supervises N brokers. Their node ids and ports follow those of the properties, and
    their data is in broker-ID, a subdirectory of each log directory. A broker that dies is started again. SIGTERM stops
    one broker after another, each with a controlled shutdown; a second signal stops all at once.
    """
    gc.disable()  # a broker's modules make many objects and no garbage; the broker enables collections when it is ready
    from odradek.server.main import run_broker

    if port is not None:
        if properties is not None or secure is not None or any(each.startswith("listeners=") for each in overrides):
            raise click.UsageError("--port is for a broker without a properties file, --secure and listeners")
        overrides += (f"listeners=PLAINTEXT://127.0.0.1:{port}",)
    if descriptor is not None:
        terminate_when_parent_ends(descriptor)
    if as_json:
        os.environ.setdefault("ODRADEK_LOG_FORMAT", "json")
    if processes is not None:
        run_processes(properties, overrides, processes, secure, as_json=as_json)
    else:
        run_broker(properties, overrides, as_json=as_json, secure=secure)


def run_processes(
    properties: str | None, overrides: tuple[str, ...], count: int, secure: str | None, *, as_json: bool
) -> None:
    from odradek.local.supervisor import Supervisor
    from odradek.server.main import configure_processes

    gc.enable()
    settings = configure_processes(properties, overrides, count, secure)
    arguments = [*([properties] if properties else []), *(f"--override={each}" for each in overrides)]
    arguments += [f"--secure={secure}"] if secure else []
    Supervisor(settings, arguments, as_json=as_json).run()
