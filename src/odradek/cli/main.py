"""The `odradek` command: its commands by name, and the one place where failures become a line and an exit code.

Commands are imported when they are called, so that `odradek --help` and `odradek broker` start fast.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

import click

from odradek.cli.framework.commands import group

COMMANDS = {
    "broker": ("odradek.cli.broker.command:broker", "Run a broker in the foreground."),
    "topic": ("odradek.cli.topic:topic", "Create, list, describe, alter and delete topics."),
    "produce": ("odradek.cli.records.produce:produce", "Write records to a topic."),
    "consume": ("odradek.cli.records.consume:consume", "Read records from a topic."),
    "group": ("odradek.cli.group:consumer_group", "List, describe, reset and delete consumer groups."),
    "pipeline": ("odradek.cli.pipeline:pipeline", "Check, draw and run declared pipelines."),
    "sql": ("odradek.cli.pipeline.sql:sql", "Ask topics, sources and views in SQL."),
    "log": ("odradek.cli.log:log", "Look into a broker's files."),
    "bench": ("odradek.cli.bench:bench", "Measure a cluster: produce, consume, latency."),
    "demo": ("odradek.cli.demo.command:demo", "A broker with a topic, written to and read from on screen."),
    "up": ("odradek.cli.rigs.up:up", "The oil rigs from sensor to alert: broker, fleet, pipeline, dashboard."),
    "rigs": ("odradek.cli.rigs:rigs", "Simulated oil rigs, and the dashboard of their pipeline."),
    "completion": ("odradek.cli.completion.command:completion", "Print the completion script of a shell."),
}


def print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import version  # noqa: PLC0415 - only --version pays for it

    click.echo(f"odradek {version('odradek')}")
    context.exit()


@group(
    lazy=COMMANDS,
    examples=[
        ("a broker on 127.0.0.1:9092, its data in ./data", "odradek broker --override log.dirs=data"),
        ("a topic, and a record in it", "odradek topic create pump --partitions 3"),
        ("", "odradek produce pump --key rig-7 --value 'pressure 107'"),
        ("all records of the topic, then the new ones as they come", "odradek consume pump --from-beginning"),
    ],
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=print_version, help="Show the version."
)
def root() -> None:
    """Odradek: the streaming platform that you pip install.

    Every command but `broker`, `demo` and `log` speaks the Kafka protocol only, and so works on any Kafka cluster.
    """


def report(message: str) -> None:
    """One line on stderr."""
    line = " ".join(message.split())
    click.echo(f"{click.style('error:', fg='red', bold=True)} {line}", err=True)


def usage_line(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    return f"{message} (see `{error.ctx.command_path} --help`)" if error.ctx is not None else message


def unexpected(error: Exception) -> str:
    """What to say of an exception that no command expected: a Kafka error, an operating system error, or our bug."""
    confluent = sys.modules.get("confluent_kafka")
    if confluent is not None and isinstance(error, confluent.KafkaException):
        from odradek.cli.framework.failure import explain  # noqa: PLC0415 - on failure only

        return explain(error.args[0])
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"this is a bug in odradek: {type(error).__name__}: {error} (ODRADEK_LOG_LEVEL=debug shows where)"


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code: 0, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C."""
    try:
        result = root.main(args=arguments, prog_name="odradek", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.UsageError as error:
        report(usage_line(error))
        return error.exit_code
    except click.ClickException as error:
        report(error.format_message())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            return 1
        if os.environ.get("ODRADEK_LOG_LEVEL", "").lower() == "debug":
            raise
        report(unexpected(error))
        return 1


def main() -> NoReturn:
    code = run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output left: nothing to say, and nothing for the interpreter to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
