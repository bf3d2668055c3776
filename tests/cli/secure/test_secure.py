"""`odradek secure init`, a broker that uses what it made, and commands with the same flag."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands import run_odradek


@dataclass(frozen=True)
class Secured:
    directory: Path
    address: str

    @property
    def options(self) -> tuple[str, ...]:
        return ("--secure", str(self.directory), "-b", self.address)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running(tmp_path_factory.mktemp("secure") / "certs", "SSL") as broker:
        yield broker


@contextlib.contextmanager
def running(directory: Path, protocol: str, *options: str) -> Iterator[Secured]:
    made = run_odradek("secure", "init", str(directory), *options)
    assert made.code == 0, made.errors
    assert f"odradek broker --secure {directory}" in made.output
    data = directory.with_name("data")
    command = [sys.executable, "-m", "odradek", "broker", "--secure", str(directory), "--format", "json"]
    overrides = [f"--override=listeners={protocol}://127.0.0.1:0", f"--override=log.dirs={data}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
    with subprocess.Popen([*command, *overrides], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            (endpoint,) = json.loads(process.stdout.readline())["endpoints"]
            yield Secured(directory, f"127.0.0.1:{endpoint['port']}")
        finally:
            process.terminate()


def test_files_are_for_their_owner_only(secured: Secured) -> None:
    assert secured.directory.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in secured.directory.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"ca.pem", "broker.pem", "admin.pem", "client.pem", "client.properties"} <= modes.keys()


def test_directory_with_files_is_not_overwritten(secured: Secured) -> None:
    again = run_odradek("secure", "init", str(secured.directory))
    assert again.code == 1
    assert "is not empty" in again.errors


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "create", "pump"),
        ("cluster", "status"),
        ("transaction", "list"),
        ("config", "describe", "broker-default"),
        ("partition", "reassign", "--list"),
        ("group", "list"),
    ],
    ids=lambda command: "-".join(command[:2]),
)
def test_command_connects_with_one_flag(secured: Secured, command: tuple[str, ...]) -> None:
    ran = run_odradek(*command, *secured.options)
    assert ran.code == 0, ran.errors


def test_file_of_kafkas_tools_and_profile_connect(secured: Secured, tmp_path: Path) -> None:
    file = str(secured.directory / "client.properties")
    assert run_odradek("topic", "list", "--command-config", file, "-b", secured.address).code == 0
    home = str(tmp_path)
    assert run_odradek("profile", "add", "dev", *secured.options, XDG_CONFIG_HOME=home).code == 0
    for arguments in (("--profile", "dev", "topic", "list"), ("topic", "list", "--profile", "dev")):
        ran = run_odradek(*arguments, XDG_CONFIG_HOME=home)
        assert ran.code == 0, ran.errors


def test_client_without_a_certificate_is_told_why(secured: Secured) -> None:
    trust = f"ssl.ca.location={secured.directory / 'ca.pem'}"
    ran = run_odradek("cluster", "status", "-b", secured.address, "-X", "security.protocol=SSL", "-X", trust)
    assert ran.code == 1
    assert "certificate required" in ran.errors


def test_certificate_decides_what_a_client_may_do(secured: Secured) -> None:
    """`client` is an authenticated user without access control entries, `admin` a super user."""
    key = str(secured.directory / "client.pem")
    other = ("-X", f"ssl.certificate.location={key}", "-X", f"ssl.key.location={key}")
    refused = run_odradek("topic", "create", "denied", *secured.options, *other)
    assert refused.code == 1
    assert "not authorized" in refused.errors
    assert run_odradek("topic", "create", "allowed", *secured.options).code == 0


def test_another_user_gets_a_certificate(secured: Secured) -> None:
    """The broker, which runs, knows the authority."""
    made = run_odradek("secure", "user", str(secured.directory), "alice")
    assert made.code == 0, made.errors
    assert {path.stat().st_mode & 0o777 for path in secured.directory.glob("alice.*")} == {0o600}
    alice = ("--command-config", str(secured.directory / "alice.properties"), "-b", secured.address)
    assert "not authorized" in run_odradek("topic", "create", "hers", *alice).errors
    rule = ("--allow-principal", "User:alice", "--operation", "Create", "--topic", "hers")
    assert run_odradek("acl", "add", *rule, *secured.options).code == 0
    created = run_odradek("topic", "create", "hers", *alice)
    assert created.code == 0, created.errors
    assert "alice.pem exists; give" in run_odradek("secure", "user", str(secured.directory), "alice").errors
    assert "cannot be the name of a file" in run_odradek("secure", "user", str(secured.directory), "a/b").errors
    assert "--secure" not in (secured.directory / "alice.properties").read_text()
    added = run_odradek("user", "add", "bob", *secured.options, stdin="bob secret")
    assert "is a listener without SASL, where bob cannot log in" in added.errors
    assert "odradek secure user DIR bob" in added.errors


def test_users_with_passwords_log_in_with_one_flag_and_add_others(tmp_path: Path) -> None:
    with running(tmp_path / "certs", "SASL_SSL", "--sasl") as broker:
        created = run_odradek("topic", "create", "pump", *broker.options)
        assert created.code == 0, created.errors
        password = tmp_path / "password"
        password.write_text("alice secret")
        added = run_odradek("user", "add", "alice", "--password-file", str(password), *broker.options)
        assert added.code == 0, added.errors
        modes = {path.stat().st_mode & 0o777 for path in broker.directory.iterdir()}
        assert modes == {0o600}
        anyone = run_odradek(
            *("cluster", "status", "-b", broker.address, "-X", "security.protocol=SASL_SSL"),
            *("-X", f"ssl.ca.location={broker.directory / 'ca.pem'}", "-X", "sasl.mechanism=PLAIN"),
            *("-X", "sasl.username=admin", "-X", "sasl.password=wrong"),
        )
        assert anyone.code == 1
