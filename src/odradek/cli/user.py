"""`odradek user`: users that authenticate with SCRAM."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.admin.users import DEFAULT_ITERATIONS, MECHANISMS, read_users, remove_credentials, set_password
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import confirm, option, with_options, yes_option
from odradek.cli.framework.output import note, print_list, print_result
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])
LARGEST_PASSWORD_LENGTH = 4096


@group(
    ("add a user; the password is asked for", "odradek user add alice"),
    ("the first user of a broker, before it runs", "odradek user add admin --config server.properties"),
    ("all users", "odradek user list"),
)
def user() -> None:
    """Manage the users of SASL listeners with SCRAM.

    Users of PLAIN are in the broker's properties (sasl.jaas.config), and those of OAUTHBEARER with the token issuer.
    """


def password_options(iterations: int | None, iterations_text: str | None = None) -> Callable[[F], F]:
    """`--mechanism`, `--iterations` with this default, `--password-file` and `--password`."""
    return lambda function: with_options(
        function,
        option(
            "--mechanism mechanisms", None, click.Choice(MECHANISMS, case_sensitive=False),
            "SCRAM-SHA-256 or SCRAM-SHA-512. Repeatable; both by default.", multiple=True,
        ),
        option(
            "--iterations", "N", click.IntRange(4096, 16384),
            "Iterations of the hash of the password.", default=iterations, show_default=iterations_text or True,
        ),
        option(
            "--password-file", "FILE", click.Path(exists=True, dir_okay=False, allow_dash=True),
            "Read the password from the first line of a file; - is standard input.",
        ),
        option(
            "--password", "PASSWORD", str,
            "The password itself. Not recommended: other users of this machine can see it.",
        ),
    )  # fmt: skip


def read_password(user: str, password: str | None, password_file: str | None) -> str:
    """From a file or standard input; asks twice on a terminal. On a command line others can read it."""
    if password is not None and password_file is not None:
        raise click.UsageError("--password and --password-file exclude each other")
    if password is not None:
        note("warning: --password shows the password to other users of this machine; use --password-file")
    elif password_file is not None and password_file != "-":
        with open(password_file, encoding="utf-8") as file:
            password = file.readline(LARGEST_PASSWORD_LENGTH + 2)
    elif password_file is None and sys.stdin.isatty():
        password = str(click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True))
    else:
        password = sys.stdin.readline(LARGEST_PASSWORD_LENGTH + 2)
    password = password.rstrip("\r\n")
    if not password:
        raise Failure(f"user {user}: the password is empty")
    if len(password) > LARGEST_PASSWORD_LENGTH:
        raise Failure(f"user {user}: the password is longer than {LARGEST_PASSWORD_LENGTH} characters")
    return password


@user.command(
    ("the password is asked for", "odradek user add alice"),
    ("the password from another program", "pass show alice | odradek user add alice"),
    ("before the broker runs for the first time", "odradek user add admin --config server.properties"),
    ("", "odradek user add admin --data-dir data"),
)
@click.argument("name", metavar="NAME")
@password_options(DEFAULT_ITERATIONS)
@option(
    "--config properties", "SERVER.PROPERTIES", click.Path(exists=True, dir_okay=False),
    "Write to the metadata of this broker, which must not run; for the first user. All brokers of its cluster "
    "must know metadata level 2 (docs/clusters.md#upgrade).",
)  # fmt: skip
@click.option("--data-dir", metavar="DIR", help="The same, for a broker with its data in this directory.")
@cluster_options
def add(
    name: str, mechanisms: tuple[str, ...], iterations: int, password: str | None, password_file: str | None,
    properties: str | None, data_dir: str | None, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Add a user that authenticates with SCRAM.

    The password is asked for, or read from standard input. The broker keeps no passwords, only keys that are derived
    from them.
    """
    chosen = mechanisms or MECHANISMS
    is_offline = properties is not None or data_dir is not None
    present = [] if is_offline else read_users(cluster, [name])
    if present:
        known = " and ".join(each.mechanism for each in present)
        raise Failure(f"user {name} exists with {known}; `odradek user password {name}` changes it")
    secret = read_password(name, password, password_file)
    where = cluster.bootstrap_servers
    if is_offline:
        where = add_offline(name, secret, chosen, iterations, properties, data_dir)
    else:
        set_password(cluster, name, secret, dict.fromkeys(chosen, iterations))
    result = {"user": name, "mechanisms": list(chosen), "iterations": iterations}
    print_result(result, f"added user {name} with {' and '.join(chosen)} to {where}", as_json=as_json)
    if not is_offline and not cluster.properties.get("security.protocol", "").upper().startswith("SASL"):
        note(
            f"{where} is a listener without SASL, where {name} cannot log in with a password; "
            f"`odradek secure user DIR {name}` makes a certificate, if DIR is of `odradek secure init`"
        )


def add_offline(
    name: str, secret: str, mechanisms: Sequence[str], iterations: int, properties: str | None, data_dir: str | None
) -> str:
    """Add the user to the metadata of a broker that does not run; returns the directory of its data."""
    from odradek.server.main import add_user

    os.environ.setdefault("ODRADEK_LOG_LEVEL", "warning")
    overrides = [] if data_dir is None else [f"log.dirs={data_dir}"]
    return add_user(properties, overrides, name, secret, mechanisms, iterations)


@user.command(("all users", "odradek user list"), name="list", short_help="List users with their mechanisms.")
@cluster_options
def list_users(cluster: Cluster, as_json: bool) -> None:
    """List the users with SCRAM credentials, their mechanisms and iterations."""
    found = read_users(cluster)
    titles, nothing = ["USER", "MECHANISM", "ITERATIONS"], "no users; `odradek user add NAME` adds one"
    print_list((each._asdict() for each in found), titles, otherwise=nothing, as_json=as_json)


@user.command(
    ("the password is asked for", "odradek user password alice"),
    ("from a file", "odradek user password alice --password-file alice.secret"),
    short_help="Change the password of a user.",
)
@click.argument("name", metavar="NAME")
@password_options(None, f"as before, at least {DEFAULT_ITERATIONS}")
@cluster_options
def password(
    name: str, mechanisms: tuple[str, ...], iterations: int | None, password: str | None, password_file: str | None,
    cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Change the password of a user, for all its mechanisms unless some are named.

    Connections that are open stay authenticated; connections.max.reauth.ms of the broker bounds for how long.
    """
    present = {credential.mechanism: credential.iterations for credential in read_users(cluster, [name])}
    if not present:
        raise Failure(f"there is no user {name}; `odradek user add {name}` adds it")
    chosen = {each: iterations or max(present.get(each, 0), DEFAULT_ITERATIONS) for each in mechanisms or present}
    set_password(cluster, name, read_password(name, password, password_file), chosen)
    result = {"user": name, "mechanisms": list(chosen), "iterations": chosen}
    print_result(result, f"changed the password of user {name} for {' and '.join(chosen)}", as_json=as_json)


@user.command(
    ("after a question", "odradek user remove alice"),
    ("without a question", "odradek user remove alice bob --yes"),
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@yes_option
@cluster_options
def remove(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Remove users with all their SCRAM credentials.

    Connections that are open stay authenticated; connections.max.reauth.ms of the broker bounds for how long.
    """
    distinct = list(dict.fromkeys(names))
    credentials = read_users(cluster, distinct)
    missing = [name for name in distinct if name not in {credential.user for credential in credentials}]
    if missing:
        raise Failure(f"there is no user {', '.join(missing)}; `odradek user list` shows the users")
    confirm(f"Remove {', '.join(distinct)}?", yes, refusal="nothing was removed")
    remove_credentials(cluster, credentials)
    for name in distinct:
        print_result({"user": name, "removed": True}, f"removed user {name}", as_json=as_json)
