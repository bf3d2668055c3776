"""The command as a whole: exit codes, one line for a failure, a fast start."""

from __future__ import annotations

import importlib.metadata
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from odradek.cli import main as cli_main
from odradek.cli.main import root, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Run


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


def test_a_member_that_is_terminated_leaves_its_group(
    odradek: Run, bootstrap_server: str, topic: str, new_name: Callable[[], str]
) -> None:
    """The next consumer does not wait for the session timeout of the one before."""
    group = new_name()
    assert odradek("produce", topic, "--value", "here").code == 0
    command = [sys.executable, "-m", "odradek", "consume", topic, "-g", group, "-b", bootstrap_server]
    command.append("--from-beginning")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    described = odradek("group", "describe", group, "--format", "json")
    assert (described.row["state"], described.row["members"], described.row["lag"]) == ("Empty", [], 0)


BUSY = """
import atexit, threading, time
from odradek.cli import main
def interrupted(**_settings):
    raise KeyboardInterrupt
threading.Thread(target=time.sleep, args=(600,)).start()
atexit.register(print, "cleaned up", flush=True)
main.root.main = interrupted
main.main()
"""


def test_ctrl_c_does_not_wait_for_threads() -> None:
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "cleaned up\n", "")


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
    monkeypatch.setattr(cli_main, "interrupts", [signal.SIGINT] if chain == "noted" else [])
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


@pytest.mark.parametrize(
    "program",
    ["import odradek.cli.main, odradek.cli.broker", "from odradek.cli.main import run; run(['--help'])"],
)
def test_broker_and_help_start_without_rich_and_clients(program: str) -> None:
    listing = "import sys; print([name for name in ('rich', 'confluent_kafka', 'asyncio') if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", f"{program}; {listing}"], check=True, capture_output=True).stdout
    assert shown.endswith(b"[]\n")


def test_ctrl_c_while_modules_are_imported_is_no_traceback() -> None:
    program = """
import sys
class Interrupting:
    def find_spec(self, name, *_rest):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from odradek.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("name", ["logger", "error_cb"])
def test_what_the_client_takes_from_python_only_is_refused(odradek: Run, name: str) -> None:
    ran = odradek("topic", "list", "-X", f"{name}=1")
    assert (ran.code, ran.output) == (1, "")
    assert f"-X {name} is not a property" in ran.errors


def test_a_name_too_long_for_a_host_is_unreachable(offline: Run) -> None:
    ran = offline("topic", "list", "-b", "a" * 300 + ":1")
    assert ran.code == 1
    assert "no broker answers at" in ran.errors
