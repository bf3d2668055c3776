"""`odradek profile`: keep addresses and credentials of clusters under names."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "add": ("odradek.cli.profile.commands:add", "Store an address and client properties under a name."),
        "list": ("odradek.cli.profile.commands:list_profiles", "List the profiles."),
        "show": ("odradek.cli.profile.commands:show", "Show a profile, without its secrets."),
        "use": ("odradek.cli.profile.commands:use", "Choose the profile of commands that name no cluster."),
        "remove": ("odradek.cli.profile.commands:remove", "Remove a profile."),
    },
    examples=[
        ("keep what a file has, and use it", "odradek profile add prod --command-config client.properties"),
        ("", "odradek --profile prod topic list"),
    ],
)
def profile() -> None:
    """Store addresses and credentials of clusters under names.

    Profiles are files in the user's configuration directory that only the user can read. Every command that connects
    to a cluster takes --profile NAME, before or after the command, or ODRADEK_PROFILE. `odradek profile use NAME` makes
    a profile the default.
    """
