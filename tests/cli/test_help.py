"""The help of every command: options, examples, and what all commands have in common."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import Command, Group, command
from odradek.cli.main import root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.commands import Run


def commands_below(group: Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, Group):
            yield from commands_below(command, (*path, name))


ALL_COMMANDS = {" ".join(path): command for path, command in commands_below(root)}
RANGES = (click.IntRange, click.FloatRange)
LEAVES = sorted(path for path, each in ALL_COMMANDS.items() if not isinstance(each, Group))


def test_the_commands_of_the_issue_exist() -> None:
    assert {
        "broker", "topic create", "topic list", "topic describe", "topic alter", "topic delete", "produce", "consume",
        "group list", "group describe", "group reset", "group delete",
        "transaction list", "transaction describe", "transaction abort", "transaction find-hanging",
        "topic trim", "config describe", "config alter", "cluster info",
        "log dump", "bench produce", "bench consume", "bench latency", "demo", "completion",
        "pipeline validate", "pipeline graph", "pipeline run", "pipeline start", "pipeline stop", "pipeline status",
        "pipeline logs", "pipeline watch", "pipeline checkpoints", "pipeline reset", "pipeline backfill",
        "pipeline rebuild",
    } <= ALL_COMMANDS.keys()  # fmt: skip


def test_every_command_has_help_and_an_example_of_itself() -> None:
    for path, each in ALL_COMMANDS.items():
        assert each.help, path
        assert isinstance(each, Command), path
        assert each.examples, path
        if not isinstance(each, Group):
            assert any(f"odradek {path}" in line for _meaning, line in each.examples), path


def options_of(path: str) -> set[str]:
    return {option for parameter in ALL_COMMANDS[path].params for option in parameter.opts}


def test_numbers_are_named_for_what_they_are() -> None:
    """Not `INTEGER RANGE`."""
    parameters = [(path, each) for path in LEAVES for each in ALL_COMMANDS[path].params]
    assert not [(path, each.name) for path, each in parameters if isinstance(each.type, RANGES) and not each.metavar]


def test_every_command_prints_text_or_json() -> None:
    """The two others print a file."""
    others = {"metrics dashboard", "metrics rules"}
    assert {path for path in LEAVES if "--format" not in options_of(path)} <= others


def test_every_option_is_explained() -> None:
    for path in LEAVES:
        for parameter in ALL_COMMANDS[path].params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, f"{path} {parameter.opts}"


WITHOUT_A_CLUSTER = {
    "broker",
    "secure user",
    "zookeeper",
    "log dump",
    "log verify",
    "log repair",
    "demo",
    "up",
    "metadata migrate",
    "example copy",
    "example list",
    "completion",
    "metrics dashboard",
    "metrics rules",
    "profile list",
    "profile remove",
    "profile show",
    "profile use",
    "secure init",
} | {
    path
    for path in LEAVES
    if path.startswith("pipeline ")  # their definitions say which
}


def test_commands_that_speak_to_a_cluster_say_how_to_reach_it() -> None:
    speaking = [path for path in LEAVES if path not in WITHOUT_A_CLUSTER]
    assert not [path for path in speaking if not {"--bootstrap-server", "-b", "-X"} <= options_of(path)]


def all_examples() -> list[tuple[str, str]]:
    """Meanings and lines."""
    return [each for command in ALL_COMMANDS.values() if isinstance(command, Command) for each in command.examples]


def test_examples_parse() -> None:
    """An example that names an option which does not exist is worse than none."""
    for _meaning, line in all_examples():
        for part in line.split(" | "):
            words = shlex.split(part.split(">")[0].split("<")[0].replace("$(", "").replace(")", ""))
            if words[:1] != ["odradek"]:
                continue
            chosen: click.Command = root
            words = words[1:]
            while isinstance(chosen, Group):
                chosen = chosen.get_command(click.Context(chosen), words.pop(0)) or chosen
            known = {option for parameter in chosen.params for option in (*parameter.opts, *parameter.secondary_opts)}
            for word in words:
                if word.startswith("-") and not word[1:2].isdigit():
                    assert word.split("=")[0] in known, f"{line}: {word}"


def test_help_lists_the_commands_and_shows_examples(offline: Run) -> None:
    shown = offline("--help")
    assert shown.code == 0
    for name in ("broker", "topic", "produce", "consume", "group", "pipeline", "log", "bench", "demo", "completion"):
        assert f"  {name} " in shown.output
    assert "Examples:" in shown.output
    assert "odradek topic create pump" in shown.output


def test_help_of_a_command_shows_its_options_and_examples(offline: Run) -> None:
    shown = offline("consume", "--help")
    assert shown.code == 0
    assert "--from-beginning" in shown.output
    assert "--output-format" in shown.output
    assert "odradek consume pump --from-beginning --until-end" in shown.output


def test_help_has_long_names_in_one_column_and_colours_on_a_terminal() -> None:
    @command(("all of it", "odradek empty --all"))
    @click.option("--all", is_flag=True, help="Everything.")
    @click.option("--name", "-n", metavar="NAME", help="Its name.")
    def empty() -> None:
        """Do nothing."""

    shown = empty.get_help(empty.make_context("empty", []))
    assert click.style("--name", fg="cyan") in shown
    assert click.unstyle(shown).splitlines() == [
        "Usage: empty [OPTIONS]",
        "",
        "  Do nothing.",
        "",
        "Options:",
        "      --all        Everything.",
        "  -n, --name NAME  Its name.",
        "  -h, --help       Show this message and exit.",
        "",
        "Examples:",
        "  # all of it",
        "  odradek empty --all",
    ]


def test_examples_fit_a_terminal_of_80_columns() -> None:
    """A line that wraps cannot be copied."""
    for meaning, line in all_examples():
        assert len(line) <= 78, line
        assert len(meaning) <= 76, meaning


def unquoted(line: str) -> str:
    """The characters of a command line that a shell interprets: those outside of quotes, without escaped ones."""
    found, quote, is_escaped = [], "", False
    for character in line:
        if is_escaped:
            is_escaped = False
        elif quote:
            quote = "" if character == quote else quote
            if quote == '"' and character == "!":
                found.append(character)  # history expansion works inside double quotes
        elif character == "\\":
            is_escaped = True
        elif character in "'\"":
            quote = character
        else:
            found.append(character)
    return "".join(found)


def test_examples_work_in_zsh() -> None:
    """zsh refuses a pattern that matches no file, and interprets brackets, =word and ! where bash may not."""
    for _meaning, line in all_examples():
        plain = unquoted(line)
        assert not set(plain) & set("*?[]{}!^#;&`"), line
        assert "(" not in plain, line
        assert not any(word.startswith("=") for word in plain.split()), line


def test_help_prints_no_bounds_of_machine_words() -> None:
    for path in LEAVES:
        each = ALL_COMMANDS[path]
        shown = each.get_help(each.make_context(path, [], resilient_parsing=True, terminal_width=200))
        assert "Usage" in click.unstyle(shown), path
        assert "2147483647" not in shown, path
        assert "9223372036854775807" not in shown, path
