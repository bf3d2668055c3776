"""The command as a whole: help everywhere, exit codes, one line for a failure, a fast start."""

from __future__ import annotations

import importlib.metadata
import resource
import signal
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import click
import pytest

from odradek.cli import main as cli_main
from odradek.cli.framework.commands import Command, Group
from odradek.cli.main import root, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Run


def commands_below(group: Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, Group):
            yield from commands_below(command, (*path, name))


ALL_COMMANDS = {" ".join(path): command for path, command in commands_below(root)}
LEAVES = sorted(path for path, command in ALL_COMMANDS.items() if isinstance(command, Command))


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


@pytest.mark.parametrize("path", sorted(ALL_COMMANDS))
def test_every_command_has_help_and_an_example_of_itself(path: str) -> None:
    command = ALL_COMMANDS[path]
    assert command.help
    assert isinstance(command, Command | Group)
    assert command.examples
    if isinstance(command, Command):
        assert any(f"odradek {path}" in line for _meaning, line in command.examples)


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in {"metrics dashboard", "metrics rules"}])
def test_every_command_prints_text_or_json(path: str) -> None:
    """The two others print a file."""
    options = {option for parameter in ALL_COMMANDS[path].params for option in parameter.opts}
    assert "--format" in options


@pytest.mark.parametrize("path", LEAVES)
def test_every_option_is_explained(path: str) -> None:
    for parameter in ALL_COMMANDS[path].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{path} {parameter.opts}"


WITHOUT_A_CLUSTER = {
    "broker",
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
    "secure init",
} | {
    path
    for path in LEAVES
    if path.startswith("pipeline ")  # their definitions say which
}


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in WITHOUT_A_CLUSTER])
def test_commands_that_speak_to_a_cluster_say_how_to_reach_it(path: str) -> None:
    options = {option for parameter in ALL_COMMANDS[path].params for option in parameter.opts}
    assert {"--bootstrap-server", "-b", "-X"} <= options


@pytest.mark.parametrize("path", sorted(ALL_COMMANDS))
def test_examples_parse(path: str) -> None:
    """An example that names an option which does not exist is worse than none."""
    import shlex

    command = ALL_COMMANDS[path]
    assert isinstance(command, Command | Group)
    for _meaning, line in command.examples:
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


def test_version(offline: Run) -> None:
    assert offline("--version").output == f"odradek {importlib.metadata.version('odradek')}\n"


def test_wrong_usage_is_one_line_and_code_2(offline: Run) -> None:
    ran = offline("topic", "create", "a", "--partitons", "3")
    assert (ran.code, ran.output) == (2, "")
    assert ran.errors.startswith("odradek: error: ")
    assert ran.errors.count("\n") == 1
    assert "(see `odradek topic create --help`)" in ran.errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("topik",), "there is no command 'topik'; did you mean topic? (see `odradek --help`)"),
        (("topic", "descrbe"), "there is no command 'descrbe'; did you mean describe? (see `odradek topic --help`)"),
        (("xyzzy",), "there is no command 'xyzzy' (see `odradek --help`)"),
    ],
)
def test_an_unknown_command_is_wrong_usage_with_a_suggestion(
    offline: Run, words: tuple[str, ...], message: str
) -> None:
    ran = offline(*words)
    assert (ran.code, ran.errors) == (2, f"odradek: error: {message}\n")


def test_unreachable_broker_is_reported_at_once_with_what_to_do(offline: Run) -> None:
    began_at = time.monotonic()
    ran = offline("topic", "list", "-b", "127.0.0.1:1")
    assert time.monotonic() - began_at < 12  # what is asked of a broker that is there may take 15 s
    assert (ran.code, ran.output) == (1, "")
    assert ran.errors.count("\n") == 1
    assert "127.0.0.1:1" in ran.errors
    assert "odradek broker" in ran.errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "list"),
        ("topic", "create", "a"),
        ("topic", "describe", "a"),
        ("topic", "alter", "a", "--partitions", "2"),
        ("topic", "delete", "a", "--yes"),
        ("topic", "trim", "a", "--all", "--yes"),
        ("config", "describe", "topic", "a"),
        ("config", "alter", "broker-default", "--set", "a=1"),
        ("cluster", "info"),
        ("consume", "a", "--group", "g"),
        ("group", "list"),
        ("group", "describe", "a"),
        ("group", "reset", "a", "--to-earliest"),
        ("group", "delete", "a", "--yes"),
        ("transaction", "list"),
        ("transaction", "describe", "a"),
        ("transaction", "abort", "a", "--partition", "0", "--start-offset", "0", "--yes"),
        ("transaction", "find-hanging"),
        ("quota", "list"),
        ("quota", "set", "--user", "a", "producer_byte_rate=1"),
        ("quota", "remove", "--user", "a"),
        ("produce", "a", "--value", "1"),
        ("consume", "a"),
        ("bench", "produce"),
        ("bench", "consume"),
        ("bench", "latency"),
    ],
    ids=" ".join,
)
def test_every_command_fails_clearly_without_a_broker(offline: Run, arguments: tuple[str, ...]) -> None:
    ran = offline(*arguments)
    assert (ran.code, ran.output) == (1, "")
    assert ran.errors.startswith("odradek: error: no broker answers at 127.0.0.1:1 (connection refused)")


@pytest.mark.parametrize("address", ["nonsense:port", ":9092", "host:0", "host:99999", "::1:9092"])
def test_what_is_no_address_is_named(offline: Run, address: str) -> None:
    ran = offline("topic", "list", "-b", address)
    assert ran.code == 1
    assert repr(address) in ran.errors


def test_a_name_that_does_not_resolve_is_named(offline: Run) -> None:
    ran = offline("topic", "list", "-b", "nowhere.invalid:9092")
    assert ran.code == 1
    assert "nowhere.invalid:9092" in ran.errors


def test_unknown_client_property_is_named(odradek: Run) -> None:
    ran = odradek("topic", "list", "-X", "no.such.property=1")
    assert ran.code == 1
    assert "no.such.property" in ran.errors


def test_client_properties_reach_the_client(odradek: Run, bootstrap_server: str) -> None:
    assert odradek("topic", "list", "-b", "127.0.0.1:1", "-X", f"bootstrap.servers={bootstrap_server}").code == 0


def test_ctrl_c_ends_with_130_and_says_nothing(bootstrap_server: str, topic: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "consume", topic, "--from-beginning", "-b", bootstrap_server],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        produced = subprocess.run(
            [sys.executable, "-m", "odradek", "produce", topic, "--value", "here", "-b", bootstrap_server],
            check=False,
            capture_output=True,
        )
        assert produced.returncode == 0
        assert process.stdout.readline() == b"here\n"  # it runs, and waits for more
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read().strip() == b""


@pytest.mark.parametrize("chain", ["cause", "context", "noted", "none"])
def test_ctrl_c_inside_a_callback_of_the_client_ends_with_130(
    chain: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client turns a KeyboardInterrupt during a callback into a SystemError."""

    def interrupted(**_settings: object) -> None:
        if chain in {"noted", "none"}:
            raise SystemError("returned NULL without setting an exception")
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            if chain == "cause":
                raise SystemError("returned a result with an exception set") from interrupt
            raise SystemError("returned a result with an exception set")  # noqa: B904 - the context is what is tested

    monkeypatch.setattr(root, "main", interrupted)
    monkeypatch.setattr(cli_main, "_interrupts", [signal.SIGINT] if chain == "noted" else [])
    assert run([]) == (1 if chain == "none" else 130)
    errors = capsys.readouterr().err
    assert errors == ("" if chain != "none" else errors)
    assert ("this is a bug in odradek" in errors) == (chain == "none")


def test_ctrl_c_in_a_bench_ends_with_130(bootstrap_server: str, topic: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "bench", "produce", "-b", bootstrap_server, "-t", topic, "--duration", "10m"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            command = [sys.executable, "-m", "odradek", "consume", topic, "-o", "earliest", "-n", "1", "-b"]
            subprocess.run([*command, bootstrap_server], check=True, capture_output=True, timeout=60)  # it runs
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert errors.strip() == b""


def test_a_reader_that_leaves_is_no_error(odradek: Run, topic: str, bootstrap_server: str) -> None:
    lines = "".join(f"{number:0100d}\n" for number in range(20_000))
    assert odradek("produce", topic, stdin=lines).code == 0
    command = (
        f"{sys.executable} -m odradek consume {topic} --from-beginning --until-end -b {bootstrap_server} | head -n 1"
    )
    ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False, timeout=90)
    assert ran.stdout.count(b"\n") == 1
    assert ran.stderr == b""


def test_help_answers_in_0_3_seconds() -> None:
    """The median of several, in seconds of processor: it waits for nothing, and other tests run beside this one."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "odradek", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    once()
    assert statistics.median(once() for _ in range(7)) < 0.3


def test_broker_imports_neither_rich_nor_a_client() -> None:
    """`odradek broker` is what must start fast."""
    program = (
        "import sys; import odradek.cli.main; import odradek.cli.broker.command; "
        "print([name for name in sys.modules if name.split('.')[0] in {'rich', 'confluent_kafka', 'asyncio'}])"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"[]\n"


def test_root_help_imports_no_client() -> None:
    program = (
        "import sys; from odradek.cli.main import run; run(['--help']); "
        "print([name for name in sys.modules if name == 'confluent_kafka'], file=sys.stderr)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stderr == b"[]\n"


@pytest.mark.parametrize("path", sorted(ALL_COMMANDS))
def test_examples_fit_a_terminal_of_80_columns(path: str) -> None:
    """A line that wraps cannot be copied."""
    command = ALL_COMMANDS[path]
    assert isinstance(command, Command | Group)
    for meaning, line in command.examples:
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


@pytest.mark.parametrize("path", sorted(ALL_COMMANDS))
def test_examples_work_in_zsh(path: str) -> None:
    """zsh refuses a pattern that matches no file, and interprets brackets, =word and ! where bash may not."""
    command = ALL_COMMANDS[path]
    assert isinstance(command, Command | Group)
    for _meaning, line in command.examples:
        plain = unquoted(line)
        assert not set(plain) & set("*?[]{}!^#;&`"), line
        assert "(" not in plain, line
        assert not any(word.startswith("=") for word in plain.split()), line


@pytest.mark.parametrize("path", LEAVES)
def test_help_prints_no_bounds_of_machine_words(path: str, offline: Run) -> None:
    shown = offline(*path.split(), "--help", COLUMNS="200").output
    assert "2147483647" not in shown
    assert "9223372036854775807" not in shown


@pytest.mark.parametrize("name", ["logger", "error_cb"])
def test_what_the_client_takes_from_python_only_is_refused(odradek: Run, name: str) -> None:
    ran = odradek("topic", "list", "-X", f"{name}=1")
    assert (ran.code, ran.output) == (1, "")
    assert f"-X {name} is not a property" in ran.errors


def test_a_name_too_long_for_a_host_is_unreachable(offline: Run) -> None:
    ran = offline("topic", "list", "-b", "a" * 300 + ":1")
    assert ran.code == 1
    assert "no broker answers at" in ran.errors
