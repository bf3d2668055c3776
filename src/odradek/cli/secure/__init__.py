"""`odradek secure`: certificates and credentials for development."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "init": ("odradek.cli.secure.commands:init", "Make a CA, certificates and client configurations."),
        "user": ("odradek.cli.secure.commands:user", "Make a certificate for another user."),
    },
    examples=[
        ("make them, and start a broker that uses them", "odradek secure init certs"),
        ("", "odradek broker --secure certs"),
        ("a client with the same flag", "odradek topic list --secure certs"),
    ],
)
def secure() -> None:
    """Make certificates and an admin user for development."""
