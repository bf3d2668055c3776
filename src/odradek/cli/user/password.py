"""`odradek user password`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.output import print_json, say
from odradek.cli.user.credentials import credential_options, read_users, set_password
from odradek.cli.user.secret import password_options, read_password

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster


@command(
    examples=[
        ("the password is asked for", "odradek user password alice"),
        ("from a file", "odradek user password alice --password-file alice.secret"),
    ]
)
@click.argument("name", metavar="NAME")
@credential_options
@password_options
@cluster_options
def password(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: str | None,
    password_file: str | None,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Change the password of a user, for all its mechanisms unless some are named.

    Connections that are open stay authenticated; connections.max.reauth.ms of the broker bounds for how long.
    """
    present = [credential.mechanism for credential in read_users(cluster, [name])]
    if not present:
        raise Failure(f"there is no user {name}; `odradek user add {name}` adds it")
    chosen = mechanisms or present
    set_password(cluster, name, read_password(name, password, password_file), chosen, iterations)
    if as_json:
        print_json({"user": name, "mechanisms": list(chosen), "iterations": iterations})
    else:
        say(f"changed the password of user {name} for {' and '.join(chosen)}")
