"""`odradek completion`: the script with which a shell completes commands, options, and names of the cluster."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_result


@command(
    ("bash, for this session", 'eval "$(odradek completion bash)"'),
    ("zsh, for every session", "echo 'eval \"$(odradek completion zsh)\"' >> ~/.zshrc"),
    ("fish, for every session", "odradek completion fish > ~/.config/fish/completions/odradek.fish"),
)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@format_option
def completion(shell: str, as_json: bool) -> None:
    """Print the completion script for a shell.

    Names of topics, groups and settings are completed if the broker answers within a second
    (ODRADEK_BOOTSTRAP_SERVER, or -b before the name).
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(click.get_current_context().find_root().command, {}, "odradek", "_ODRADEK_COMPLETE").source()
    print_result({"shell": shell, "script": script}, script, as_json=as_json)
