"""`odradek user`: users that authenticate with SCRAM."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "add": ("odradek.cli.user.add:add", "Add a user with a password."),
        "list": ("odradek.cli.user.list:list_users", "List users with their mechanisms."),
        "password": ("odradek.cli.user.password:password", "Change the password of a user."),
        "remove": ("odradek.cli.user.remove:remove", "Remove users."),
    },
    examples=[
        ("add a user; the password is asked for", "odradek user add alice"),
        ("the first user of a broker, before it runs", "odradek user add admin --config server.properties"),
        ("all users", "odradek user list"),
    ],
)
def user() -> None:
    """Manage the users of SASL listeners with SCRAM.

    Users of PLAIN are in the broker's properties (sasl.jaas.config), and those of OAUTHBEARER with the token issuer.
    """
