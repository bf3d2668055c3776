"""`odradek user add`: over the wire, or into the metadata of a broker that does not run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from odradek.admin.users import DEFAULT_ITERATIONS, MECHANISMS, read_users, set_password
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import note, print_json, say
from odradek.cli.user.options import iterations_option, mechanism_option
from odradek.cli.user.secret import password_options, read_password
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("the password is asked for", "odradek user add alice"),
        ("the password from another program", "pass show alice | odradek user add alice"),
        ("before the broker runs for the first time", "odradek user add admin --config server.properties"),
        ("", "odradek user add admin --data-dir data"),
    ]
)
@click.argument("name", metavar="NAME")
@mechanism_option
@iterations_option(DEFAULT_ITERATIONS)
@password_options
@click.option(
    "--config",
    "properties",
    metavar="SERVER.PROPERTIES",
    type=click.Path(exists=True, dir_okay=False),
    help="Write to the metadata of this broker, which must not run; for the first user. All brokers of its cluster "
    "must know metadata level 2 (docs/clusters.md#upgrade).",
)
@click.option("--data-dir", metavar="DIR", help="The same, for a broker with its data in this directory.")
@cluster_options
def add(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: str | None,
    password_file: str | None,
    properties: str | None,
    data_dir: str | None,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Add a user that authenticates with SCRAM.

    The password is asked for, or read from standard input. The broker keeps no passwords, only keys that are derived
    from them.
    """
    chosen = mechanisms or MECHANISMS
    is_offline = properties is not None or data_dir is not None
    if not is_offline:
        present = read_users(cluster, [name])
        if present:
            raise Failure(f"user {name} exists with {_listed(present)}; `odradek user password {name}` changes it")
    secret = read_password(name, password, password_file)
    if is_offline:
        where = _add_offline(name, secret, chosen, iterations, properties, data_dir)
    else:
        where = cluster.bootstrap_servers
        set_password(cluster, name, secret, dict.fromkeys(chosen, iterations))
    if as_json:
        print_json({"user": name, "mechanisms": list(chosen), "iterations": iterations})
    else:
        say(f"added user {name} with {' and '.join(chosen)} to {where}")
    if not is_offline and not cluster.properties.get("security.protocol", "").upper().startswith("SASL"):
        note(
            f"{where} is a listener without SASL, where {name} cannot log in with a password; "
            f"`odradek secure user DIR {name}` makes a certificate, if DIR is of `odradek secure init`"
        )


def _listed(present: Sequence[tuple[str, str, int]]) -> str:
    return " and ".join(mechanism for _, mechanism, _ in present)


def _add_offline(
    name: str, secret: str, mechanisms: Sequence[str], iterations: int, properties: str | None, data_dir: str | None
) -> str:
    from odradek.server.main import BrokerFailure, add_user

    os.environ.setdefault("ODRADEK_LOG_LEVEL", "warning")
    overrides = [] if data_dir is None else [f"log.dirs={data_dir}"]
    try:
        return add_user(properties, overrides, name, secret, mechanisms, iterations)
    except BrokerFailure as failure:
        raise Failure(str(failure)) from failure
