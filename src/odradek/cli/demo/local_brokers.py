"""The brokers that `odradek demo` and `odradek up` start on this machine, and what pictures of them share."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from odradek.cli.framework.options import option
from odradek.cli.framework.output import LiveLines, faint, print_result
from odradek.conventions.failures import Failure
from odradek.local.child_process import command_name
from odradek.local.ports import listening_error
from odradek.local.running_broker import BrokerError, RunningBroker
from odradek.local.running_cluster import RunningCluster
from odradek.local.zookeeper import ZooKeeperDidNotStart

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_Running = TypeVar("_Running", RunningBroker, RunningCluster)
MOST_BROKERS = 9  # each has a key of the demo
SESSION_TIMEOUT_MS = 3000  # the death of a controller is noticed after this time

brokers_option = option(
    "--brokers", "N", click.IntRange(1, MOST_BROKERS),
    "Brokers on consecutive ports; more than one with a ZooKeeper, which needs Java.", default=1,
)  # fmt: skip
port_option = option(
    "--port", "PORT", click.IntRange(min=0, max=65535), "Port of the broker; 0 for a free one.", default=9092
)


TITLE = click.style("Odradek", fg="cyan", bold=True)  # of a picture


class DemoScreen:
    """Lines or objects as they come, or a picture that is drawn in place with `live`."""

    def __init__(self, *, as_json: bool = False, live: LiveLines | None = None) -> None:
        self.as_json = as_json
        self.live = live

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.__enter__()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.live is not None:
            self.live.__exit__()

    def print(self, value: dict[str, Any], text: str) -> None:
        print_result(value, text, as_json=self.as_json)


def figures_line(figures: Mapping[str, str], fg: str | None = None) -> str:
    """`produced 12   consumed 12`."""
    return "   ".join(f"{faint(name)} {click.style(figure, fg=fg, bold=True)}" for name, figure in figures.items())


def check_ports(first: int, count: int, command: str) -> None:
    """Raise a Failure that names another port if something listens on one of these. 0 stands for any free port."""
    for port in range(first, first + count) if first else ():
        error = listening_error(port)
        if error is not None and error.errno != errno.EADDRINUSE:
            raise Failure(f"cannot listen on 127.0.0.1:{port}: {error.strerror}")
        if error is not None:
            other = port + 100 if port + 100 < 65536 else 0
            with_make = f' (with make: make up ARGS="--port {other}")' if command == "up" else ""
            advice = f"choose another port: {command_name()} {command} --port {other}{with_make}"
            raise Failure(f"127.0.0.1:{port} is in use; {advice}")


def local_broker(port: int, data_dir: str | None = None) -> AbstractContextManager[RunningBroker]:
    return _started(RunningBroker(port=port, data_directory=data_dir))


def local_cluster(count: int, port: int, data_dir: str | None = None) -> AbstractContextManager[RunningCluster]:
    """ZooKeeper and brokers, of which any may be killed: the others acknowledge records."""
    in_sync = 2 if count > 2 else 1
    properties = {
        "min.insync.replicas": in_sync,
        "transaction.state.log.min.isr": in_sync,
        "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
    }
    return _started(RunningCluster(count, properties, has_network=False, port=port, data_directory=data_dir))


@contextlib.contextmanager
def _started(running: _Running) -> Iterator[_Running]:
    try:
        running.start()
        yield running
    except ZooKeeperDidNotStart as error:
        raise Failure(f"ZooKeeper did not start: {error}") from None
    except BrokerError as error:
        raise Failure(error.reason) from None
    finally:
        running.close()
