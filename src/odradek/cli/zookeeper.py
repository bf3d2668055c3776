"""`odradek zookeeper`: run one ZooKeeper for development in the foreground."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import SignalSafeSetter
from odradek.cli.framework.options import format_option, option
from odradek.conventions.failures import Failure
from odradek.host.lifetime_pipe import call_when_parent_ends

if TYPE_CHECKING:
    import subprocess


@command(
    ("on 127.0.0.1:2181", "odradek zookeeper"),
    ("on any free port, with data of its own", "odradek zookeeper --port 0 --data-dir ./zookeeper"),
    ("a broker of its cluster", "odradek broker --override zookeeper.connect=127.0.0.1:2181"),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@option("--port", "PORT", click.IntRange(0, 65535), "Port; 0 chooses a free one.", default=2181)
@option(
    "--data-dir", None, click.Path(file_okay=False), "Directory for its data, its configuration and its output.",
    default="/tmp/odradek-zookeeper",
)  # fmt: skip
@option("--jars directory", None, click.Path(exists=True, file_okay=False), "Directory with the jars of ZooKeeper.")
@click.option("--stop-with", "descriptor", type=int, hidden=True)
@format_option
def zookeeper(
    host: str, port: int, data_dir: str, directory: str | None, descriptor: int | None, as_json: bool
) -> None:
    """Run one ZooKeeper server in the foreground, until SIGTERM or Ctrl-C, for development and tests.

    A line on standard output reports that it is ready. A cluster in production uses an ensemble of three or five
    servers of its own; every version of ZooKeeper from 3.5 on works.

    The server is Apache ZooKeeper (org.apache.zookeeper.server.ZooKeeperServerMain) on Java 11 or newer. Its jars are
    those that PySpark brings (pip install 'odradek[pipelines]'): zookeeper, zookeeper-jute, slf4j-api, metrics-core,
    snappy-java, and log4j for its errors. With --jars they are taken from another directory, for example one with
    org.apache.zookeeper:zookeeper and its dependencies from Maven Central.
    """
    from odradek.local.zookeeper import ZooKeeperServer, find_jars, zookeeper_version

    jars = find_jars(directory)
    server = ZooKeeperServer(jars, data_dir, host, port)
    stopping = threading.Event()
    setter = SignalSafeSetter(stopping)
    signal.signal(signal.SIGTERM, lambda *_: setter.set())
    if descriptor is not None:
        call_when_parent_ends(descriptor, stopping.set)
    try:
        server.start()
        version = zookeeper_version(jars)
        process = server.process
        assert process is not None
        line = f"zookeeper {version} is ready on {host}:{server.port} (data in {data_dir})"
        facts = {"version": version, "host": host, "port": server.port, "data_dir": os.path.abspath(data_dir)}
        print(json.dumps({"event": "ready", **facts, "pid": process.pid}) if as_json else line, flush=True)
        threading.Thread(target=_stop_after, args=(process, stopping), daemon=True).start()
        stopping.wait()
        if process.poll() is not None:
            raise Failure(f"ZooKeeper ended with exit code {process.returncode}; its output is in {data_dir}")
    finally:
        server.stop()


def _stop_after(process: subprocess.Popen[bytes], stopping: threading.Event) -> None:
    process.wait()
    stopping.set()
