"""`odradek console`: serves the web console of a cluster until Ctrl-C."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.console.login_options import LoginOptions, login_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.addresses import split_addresses
from odradek.conventions.failures import Failure
from odradek.host.lifetime_pipe import terminate_when_parent_ends

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

DEFAULT_LISTEN = "127.0.0.1:8484"
INSTALL = "pip install 'odradek[console]'"


@command(
    examples=[
        ("the cluster at 127.0.0.1:9092, on http://127.0.0.1:8484/", "odradek console"),
        ("another cluster, which the console does not change", "odradek console -b kafka-1:9092 --read-only"),
        ("without card numbers and passwords", "odradek console --mask '$.card.number' --mask '$..password'"),
        ("Avro values of a topic as JSON", "odradek console --schema orders=orders.avsc"),
        (
            "users of the cluster log in, behind a proxy with TLS",
            "odradek console --login sasl --listen 10.0.0.7:8484 --behind-proxy",
        ),
        ("on a free port, for a script", "odradek console --listen 127.0.0.1:0 --format json"),
    ]
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    type=TEXT,
    default=DEFAULT_LISTEN,
    show_default=True,
    help="Address of the console; port 0 is any free port. An address that others reach needs --login and TLS.",
)
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option(
    "--mask",
    "masks",
    metavar="RULE",
    type=TEXT,
    multiple=True,
    help="Hide a part of records: key, header:NAME, or a JSON path such as $.card.number. Repeatable.",
)
@click.option(
    "--schema",
    "schemas",
    metavar="TOPIC=FILE",
    type=TEXT,
    multiple=True,
    help="Schema of a topic's values: FILE.avsc (Avro), or FILE.desc:MESSAGE (descriptor set of Protobuf). Repeatable.",
)
@login_options
@click.option("--stop-with", type=int, hidden=True, help="Descriptor; stop when its other end is closed.")
@cluster_options
def console(
    *,
    listen: str,
    read_only: bool,
    masks: tuple[str, ...],
    schemas: tuple[str, ...],
    access: LoginOptions,
    stop_with: int | None,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Serve the web console of a cluster: topics, records, groups, brokers, transactions,
    pipelines, rigs, access.

    It works with any Kafka cluster. Without a login, everybody who can open the page on this machine has the rights of
    the given client properties. With --login, users log in and have their own rights.
    """
    try:
        from odradek.console.records.decoding import DecodeAndMask, SchemaError, load_decoder
        from odradek.console.records.json_path import PathError
        from odradek.console.records.masking import parse_rule
        from odradek.console.server import serve
        from odradek.console.settings import ConsoleSettings
    except ModuleNotFoundError as error:
        raise Failure(f"the console needs the package {error.name}: {INSTALL}") from None
    host, port = parse_listen(listen)
    try:
        rules = tuple(parse_rule(rule) for rule in masks)
    except PathError as error:
        raise click.UsageError(f"--mask: {error}") from None
    try:
        decoders = dict(load_decoder(schema) for schema in schemas)
    except SchemaError as error:
        raise click.UsageError(f"--schema: {error}") from None
    log_changes()
    if stop_with is not None:
        terminate_when_parent_ends(stop_with)
    settings = ConsoleSettings(
        host, port, read_only, DecodeAndMask(rules, decoders), **access.console_settings(cluster)
    )
    serve(cluster, settings, lambda address: show_address(address, cluster, as_json))


def parse_listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if port == "0" and host:
        return host.strip("[]"), 0
    ((name, number),) = split_addresses(text)[:1]
    return name, number


def show_address(address: str, cluster: Cluster, as_json: bool) -> None:
    if as_json:
        print_json({"console": address, "bootstrap_servers": cluster.bootstrap_servers})
    else:
        say(f"console of {cluster.bootstrap_servers}: {address} (Ctrl-C stops)")
    sys.stdout.flush()


def log_changes() -> None:
    """One line on standard error for each change that the console makes."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s console change: %(message)s"))
    audit = logging.getLogger("odradek.console.audit")
    audit.setLevel(logging.INFO)
    audit.addHandler(handler)
    audit.propagate = False
