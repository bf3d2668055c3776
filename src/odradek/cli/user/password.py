"""`odradek user password`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.users import DEFAULT_ITERATIONS, read_users, set_password
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.user.options import iterations_option, mechanism_option
from odradek.cli.user.secret import password_options, read_password
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("the password is asked for", "odradek user password alice"),
        ("from a file", "odradek user password alice --password-file alice.secret"),
    ]
)
@click.argument("name", metavar="NAME")
@mechanism_option
@iterations_option(None, f"as before, at least {DEFAULT_ITERATIONS}")
@password_options
@cluster_options
def password(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int | None,
    password: str | None,
    password_file: str | None,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Change the password of a user, for all its mechanisms unless some are named.

    Connections that are open stay authenticated; connections.max.reauth.ms of the broker bounds for how long.
    """
    present = {credential.mechanism: credential.iterations for credential in read_users(cluster, [name])}
    if not present:
        raise Failure(f"there is no user {name}; `odradek user add {name}` adds it")
    chosen = {each: iterations or max(present.get(each, 0), DEFAULT_ITERATIONS) for each in mechanisms or present}
    set_password(cluster, name, read_password(name, password, password_file), chosen)
    if as_json:
        print_json({"user": name, "mechanisms": list(chosen), "iterations": chosen})
    else:
        say(f"changed the password of user {name} for {' and '.join(chosen)}")
