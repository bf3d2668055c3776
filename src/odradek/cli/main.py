"""The `odradek` command: its subcommands, and the place where failures become a line and an exit code.

Commands are imported when they are called, so that `odradek --help` and `odradek broker` start fast.
"""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
from typing import NoReturn

import click

from odradek import __version__
from odradek.cli.client.options import remember_profile
from odradek.cli.framework.commands import group
from odradek.cli.framework.interrupt import interrupt, interrupts
from odradek.cli.framework.options import option
from odradek.cli.framework.output import report_error
from odradek.conventions.failures import Failure

COMMANDS = {
    "broker": ("odradek.cli.broker:broker", "Run a broker in the foreground."),
    "zookeeper": ("odradek.cli.zookeeper:zookeeper", "Run a ZooKeeper for development in the foreground."),
    "topic": ("odradek.cli.topic:topic", "Create, list, describe, alter, trim and delete topics."),
    "stream": ("odradek.cli.stream:stream", "Manage topics together, under a path."),
    "produce": ("odradek.cli.records.produce:produce", "Write records to a topic."),
    "consume": ("odradek.cli.records.consume:consume", "Read records from a topic."),
    "group": ("odradek.cli.group:consumer_group", "List, describe, reset and delete consumer groups."),
    "transaction": ("odradek.cli.transaction:transaction", "List, describe and abort transactions; find hanging ones."),
    "config": ("odradek.cli.config:config", "Show and change settings of topics, brokers and groups."),
    "quota": ("odradek.cli.quota:quota", "Set, list and remove quotas of users, client ids and addresses."),
    "console": ("odradek.cli.console:console", "Serve the web console of a cluster."),
    "acl": ("odradek.cli.acl:acl", "Add, list, remove and check access control lists."),
    "cluster": ("odradek.cli.cluster:cluster", "Show the brokers and the state of a cluster."),
    "client": ("odradek.cli.telemetry:client", "Show the metrics that clients push, and choose which."),
    "doctor": ("odradek.cli.doctor:doctor", "Check a cluster or its security, and say what to do."),
    "partition": ("odradek.cli.partition:partition", "Move replicas of partitions, and elect leaders."),
    "user": ("odradek.cli.user:user", "Add, list and remove users, and change their passwords."),
    "metrics": ("odradek.cli.metrics:metrics", "Print a Grafana dashboard and alert rules for brokers."),
    "metadata": ("odradek.cli.metadata:metadata", "Move a single broker's metadata into a cluster's ZooKeeper."),
    "secure": ("odradek.cli.secure:secure", "Make certificates and an admin user for development."),
    "profile": ("odradek.cli.profile:profile", "Store addresses and credentials of clusters under names."),
    "pipeline": ("odradek.cli.pipeline:pipeline", "Check, draw, test and run declared pipelines."),
    "sql": ("odradek.cli.pipeline.sql:sql", "Query topics, sources and views in SQL."),
    "log": ("odradek.cli.log:log", "Show, check and repair the files of a broker."),
    "bench": ("odradek.cli.bench:bench", "Measure a cluster: produce, consume, latency."),
    "demo": ("odradek.cli.demo.broker_demo:demo", "Run a broker, a producer and a consumer, and show the records."),
    "up": ("odradek.cli.up:up", "Run an example: broker, simulated records, pipeline, live view."),
    "example": ("odradek.cli.example:example", "List, copy, simulate and watch examples."),
    "completion": ("odradek.cli.completion:completion", "Print the completion script for a shell."),
}


@group(
    ("run a broker on 127.0.0.1:9092 with its data in ./data", "odradek broker --override log.dirs=data"),
    ("create a topic, and write a record", "odradek topic create pump --partitions 3"),
    ("", "odradek produce pump --key rig-7 --value 'pressure 107'"),
    ("read all records, then new ones as they arrive", "odradek consume pump --from-beginning"),
    lazy=COMMANDS,
)
@click.version_option(__version__, message="odradek %(version)s", help="Show the version.")
@option(
    "--profile", "NAME", str,
    "Address and credentials that `odradek profile add` has stored, for the command that follows.",
    expose_value=False, callback=remember_profile,
)  # fmt: skip
def root() -> None:
    """Odradek: the streaming platform that you pip install.

    Commands reach a cluster through the Kafka protocol only, so they work with any Kafka cluster. `broker`,
    `zookeeper`, `metadata`, `demo`, `up` and `log` are Odradek's own.
    """


def usage_line(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    return f"{message} (see `{error.ctx.command_path} --help`)" if error.ctx is not None else message


def unexpected_error_text(error: Exception) -> str:
    """The line for an exception that no command expected: a Kafka error, an operating system error, or a bug."""
    confluent = sys.modules.get("confluent_kafka")
    if confluent is not None and isinstance(error, confluent.KafkaException):
        from odradek.admin.errors import explain

        return explain(error.args[0])
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"this is a bug in odradek: {type(error).__name__}: {error} (ODRADEK_LOG_LEVEL=debug shows where)"


def interrupted_code() -> int:
    """The exit code after Ctrl-C or another signal that ends a command in order."""
    return 128 + (interrupts[-1] if interrupts else signal.SIGINT)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused the exception.

    A KeyboardInterrupt that is raised while the Kafka client runs a callback surfaces as a SystemError whose cause or
    context is the KeyboardInterrupt, or which has neither.
    """
    if interrupts and isinstance(error, SystemError):
        return True
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt | click.Abort):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def run(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C, 143 after SIGTERM."""
    try:
        result = root.main(args=arguments, prog_name="odradek", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.UsageError as error:
        report_error(usage_line(error))
        return error.exit_code
    except Failure as failure:
        report_error(failure.message)
        return failure.exit_code
    except click.ClickException as error:
        report_error(error.format_message())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return interrupted_code()
    except Exception as error:
        if isinstance(error, SystemError) and is_interrupt(error):
            return interrupted_code()
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            return 1
        if os.environ.get("ODRADEK_LOG_LEVEL", "").lower() == "debug":
            raise
        report_error(unexpected_error_text(error))
        return 1


def main() -> NoReturn:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    code = run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe: leave nothing for the interpreter to flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code > 128:  # threads that are busy, or that hang in a library, are not waited for
        atexit._run_exitfuncs()  # noqa: SLF001 - there is no public way
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
