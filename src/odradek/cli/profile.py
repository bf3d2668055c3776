"""`odradek profile`: keep addresses and credentials of clusters under names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.admin import profiles
from odradek.cli.client.options import chosen_cluster, connection_options
from odradek.cli.framework.commands import OptionalArgument, group
from odradek.cli.framework.options import flag, format_option
from odradek.cli.framework.output import print_columns, print_json, print_list, print_result
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@group(
    ("keep what a file has, and use it", "odradek profile add prod --command-config client.properties"),
    ("", "odradek --profile prod topic list"),
)
def profile() -> None:
    """Store addresses and credentials of clusters under names.

    Profiles are files in the user's configuration directory that only the user can read. Every command that connects
    to a cluster takes --profile NAME, before or after the command, or ODRADEK_PROFILE. `odradek profile use NAME` makes
    a profile the default.
    """


def complete_profiles(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in profiles.profile_names() if name.startswith(incomplete)]


name_argument = click.argument("name", metavar="NAME", type=TEXT, shell_complete=complete_profiles)


@profile.command(
    ("what a file of Kafka's tools has", "odradek profile add prod --command-config client.properties"),
    ("an address alone", "odradek profile add test -b kafka-1:9092"),
    ("the admin of `odradek secure init certs`", "odradek profile add dev --secure certs"),
)
@name_argument
@flag("--replace may_replace", "Replace a profile of the same name.")
@connection_options
@format_option
def add(name: str, may_replace: bool, as_json: bool, **parameters: Any) -> None:
    """Store an address and client properties under a name. No connection is made."""
    if profiles.has_profile(name) and not may_replace:
        raise Failure(f"there is a profile {name}; --replace replaces it")
    cluster = chosen_cluster(click.get_current_context(), parameters)
    path = profiles.write_profile(name, {profiles.SERVERS: cluster.bootstrap_servers, **cluster.properties})
    text = f"profile {name} is stored in {path}; use it with `odradek --profile {name} topic list`"
    print_result({"profile": name, "file": str(path)}, text, as_json=as_json)


@profile.command(("all profiles and their addresses", "odradek profile list"), name="list")
@format_option
def list_profiles(as_json: bool) -> None:
    """List the profiles."""
    default = profiles.default_profile()
    values, rows = [], []
    for name in profiles.profile_names():
        found = profiles.read_profile(name)
        values.append({"profile": name, "bootstrap_servers": found.get(profiles.SERVERS), "default": name == default})
        protocol = found.get("security.protocol", "plaintext")
        rows.append((name, found.get(profiles.SERVERS), protocol, "yes" if name == default else ""))
    nothing = f"no profiles in {profiles.profile_directory()}; `odradek profile add NAME` makes one"
    titles = ["PROFILE", "BOOTSTRAP SERVERS", "PROTOCOL", "DEFAULT"]
    print_list(values, titles, rows, otherwise=nothing, as_json=as_json)


@profile.command(("the properties of a profile", "odradek profile show prod"))
@name_argument
@format_option
def show(name: str, as_json: bool) -> None:
    """Show a profile, without its secrets."""
    shown = profiles.shown_properties(profiles.read_profile(name))
    if as_json:
        print_json({"profile": name, "properties": shown})
    else:
        print_columns(["PROPERTY", "VALUE"], list(shown.items()))


@profile.command(
    ("all following commands are for this cluster", "odradek profile use prod"),
    ("they are for the default address again", "odradek profile use --none"),
)
@click.argument(
    "name", metavar="NAME", cls=OptionalArgument, required=False, type=TEXT, shell_complete=complete_profiles
)
@flag("--none is_none", "No profile is the default.")
@format_option
def use(name: str | None, is_none: bool, as_json: bool) -> None:
    """Choose the profile of commands that name no cluster.

    --profile, ODRADEK_PROFILE, --bootstrap-server, ODRADEK_BOOTSTRAP_SERVER, --secure and --command-config name one:
    with these the default does not apply. Pipelines have their own cluster, and take --profile.
    """
    if (name is None) is not is_none:
        raise click.UsageError("give the NAME of a profile, or --none")
    profiles.set_default_profile(name)
    text = "no profile is the default" if name is None else f"profile {name} is the default"
    print_result({"profile": name, "default": name is not None}, text, as_json=as_json)


@profile.command(("forget a cluster", "odradek profile remove test"))
@name_argument
@format_option
def remove(name: str, as_json: bool) -> None:
    """Remove a profile."""
    profiles.remove_profile(name)
    print_result({"profile": name, "removed": True}, f"profile {name} is removed", as_json=as_json)
