"""Every command that takes the address of a broker takes its credentials, from a file that others cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from odradek.cli.main import root
from odradek.server.main import OTHER_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS = "--bootstrap-server"
OPTIONS = {"--profile", "--secure", "--command-config"}


def leaves(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*words, name))


def options_of(command: click.Command) -> set[str]:
    return {each for parameter in command.params for each in parameter.opts}


COMMANDS = {" ".join(words): command for words, command in leaves(root, ())}
CONNECTING = sorted(name for name, command in COMMANDS.items() if ADDRESS in options_of(command))


def test_commands_of_all_kinds_connect() -> None:
    assert {"topic list", "produce", "pipeline run", "pipeline preview", "sql", "up", "console"} <= set(CONNECTING)


@pytest.mark.parametrize("name", CONNECTING)
def test_a_command_with_an_address_takes_credentials(name: str) -> None:
    lacking = OPTIONS - options_of(COMMANDS[name])
    assert not lacking, f"odradek {name} lacks {', '.join(lacking)}"


def test_a_broker_does_not_take_the_variables_of_commands_for_properties() -> None:
    variables = {str(each.envvar) for command in COMMANDS.values() for each in command.params if each.envvar}
    assert {"ODRADEK_BOOTSTRAP_SERVER", "ODRADEK_PROFILE"} <= variables
    assert variables <= set(OTHER_VARIABLES)
