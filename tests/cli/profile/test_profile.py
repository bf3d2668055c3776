"""Profiles: kept for their owner only, shown without secrets, and the precedence of options."""

from pathlib import Path
from typing import Any

import pytest

from odradek.admin.java_properties import librdkafka_properties
from odradek.admin.profiles import chosen_properties
from odradek.conventions.failures import Failure
from tests.commands import run_odradek
from tests.security.tls.certificates import write_certificates

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_profile_is_kept_shown_and_removed(home: Path) -> None:
    options = ("-b", "kafka-1:9093", "-X", "security.protocol=SASL_SSL", "-X", "sasl.password=hunter2")
    assert run_odradek("profile", "list").output.startswith("no profiles")
    added = run_odradek("profile", "add", "prod", *options, "--format", "json")
    file = Path(added.row["file"])
    assert file.is_relative_to(home)
    assert file.stat().st_mode & 0o777 == 0o600
    assert run_odradek("profile", "add", "prod", *options).code == 1
    shown = run_odradek("profile", "show", "prod").output
    assert "kafka-1:9093" in shown
    assert "hunter2" not in shown
    assert run_odradek("profile", "list", "--format", "json").row["bootstrap_servers"] == "kafka-1:9093"
    assert run_odradek("profile", "remove", "prod").code == 0
    missing = run_odradek("--profile", "prod", "topic", "list")
    assert "there is no profile prod" in missing.errors


def test_name_stays_in_the_directory(home: Path) -> None:
    ran = run_odradek("profile", "add", "../other")
    assert ran.code == 1
    assert "is not a name" in ran.errors
    assert list(home.iterdir()) == []


def test_later_options_win(home: Path, tmp_path: Path) -> None:
    run_odradek("profile", "add", "prod", "-b", "a:1", "-X", "client.id=profile", "-X", "security.protocol=SSL")
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=b:2\nclient.id=file\n")

    def chosen(**options: object) -> dict[str, str]:
        given: dict[str, object] = {
            "profile": None,
            "secure": None,
            "command_config": None,
            "given": {},
            "bootstrap_server": None,
        }
        return chosen_properties(**{"given": {}, **given, **options}, default_server="d:0")  # type: ignore[arg-type]  # options of all types

    assert home.exists()
    assert chosen() == {"bootstrap.servers": "d:0"}
    both = chosen(profile="prod", command_config=str(file))
    assert both == {"bootstrap.servers": "b:2", "client.id": "file", "security.protocol": "SSL"}
    last = chosen(profile="prod", given={"client.id": "x"}, bootstrap_server="c:3")
    assert (last["bootstrap.servers"], last["client.id"]) == ("c:3", "x")


@pytest.mark.parametrize(
    ("before", "after", "variable", "expected"),
    [
        (None, None, "of-variable", "of-variable:1"),
        ("before", None, "of-variable", "before:1"),
        (None, "after", "of-variable", "after:1"),
        ("before", "after", "of-variable", "after:1"),
        ("before", None, None, "before:1"),
    ],
)
def test_profile_of_the_command_line_wins_over_the_environment(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str | None,
    after: str | None,
    variable: str | None,
    expected: str,
) -> None:
    for name in ("before", "after", "of-variable"):
        run_odradek("profile", "add", name, "-b", f"{name}:1")
    if variable is not None:
        monkeypatch.setenv("ODRADEK_PROFILE", variable)
    first, last = (["--profile", name] if name else [] for name in (before, after))
    assert run_odradek(*first, "profile", "add", "chosen", *last).code == 0
    assert home.exists()
    assert run_odradek("profile", "show", "chosen", "--format", "json").row["properties"] == {
        "bootstrap.servers": expected
    }


def test_the_default_is_for_commands_that_name_no_cluster(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\n")
    for name in ("prod", "other"):
        run_odradek("profile", "add", name, "-b", f"{name}:1", "-X", "sasl.password=hunter2")
    assert "there is no profile missing" in run_odradek("profile", "use", "missing").errors
    assert run_odradek("profile", "use").code == 2
    assert run_odradek("profile", "use", "prod").output == "profile prod is the default\n"
    listed = run_odradek("profile", "list", "--format", "json").rows
    assert {each["profile"]: each["default"] for each in listed} == {"prod": True, "other": False}

    def address(*options: str, **environment: Any) -> tuple[str, bool]:
        ran = run_odradek("profile", "add", "chosen", "--replace", *options, **environment)
        assert ran.code == 0, ran.errors
        properties = run_odradek("profile", "show", "chosen", "--format", "json").row["properties"]
        return properties["bootstrap.servers"], "sasl.password" in properties

    assert home.exists()
    assert address() == ("prod:1", True)
    assert address("--profile", "other") == ("other:1", True)
    assert address("-b", "b:2") == ("b:2", False)
    assert address("--command-config", str(file)) == ("file:1", False)
    assert address(ODRADEK_BOOTSTRAP_SERVER="c:3") == ("c:3", False)
    assert run_odradek("profile", "remove", "prod").code == 0
    assert address() == ("127.0.0.1:9092", False)


def test_kafkas_names_become_librdkafkas(tmp_path: Path) -> None:
    files = write_certificates(tmp_path)
    found = librdkafka_properties(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} required username="alice" password="a;b";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": files.ca,
            "ssl.keystore.location": files.client,
            "ssl.endpoint.identification.algorithm": "",
            "ssl.enabled.protocols": "TLSv1.3",
            "default.api.timeout.ms": "5000",
        },
        lambda path: Path(path).read_bytes(),
    )
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "a;b",
        "ssl.ca.pem": Path(files.ca).read_text(),
        "ssl.certificate.location": files.client,
        "ssl.key.location": files.client,
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_store_that_cannot_be_used_is_a_failure(tmp_path: Path) -> None:
    store = tmp_path / "client.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(Failure, match="keytool -importkeystore"):
        librdkafka_properties(
            {"security.protocol": "SSL", "ssl.keystore.location": str(store)}, lambda path: Path(path).read_bytes()
        )
